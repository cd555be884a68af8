// SPDX-License-Identifier: GPL-2.0

//! The driver's half of the submission queue: indices of its own, claims of the caller.

use crate::abi::ring::{distance, slot};

/// The caller moved an index to where it cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// What was found.
    pub found: u32,
    /// Least value possible.
    pub from: u32,
    /// Greatest value possible.
    pub to: u32,
}

/// Which entries of the submission queue are to be taken.
#[derive(Clone, Copy, Debug)]
pub struct Submissions {
    entries: u32,
    head: u32,
    tail: u32,
}

impl Submissions {
    /// An empty queue of `entries`, a power of two.
    pub const fn new(entries: u32) -> Self {
        Self { entries, head: 0, tail: 0 }
    }

    /// Entries of the batch that are still to be taken.
    pub const fn waiting(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// Next entry to take: what the shared head says.
    pub const fn head(&self) -> u32 {
        self.head
    }

    /// Believe a tail of the caller, where it is possible; returns the entries waiting.
    ///
    /// # Errors
    ///
    /// [`Broken`]: the tail went backwards or too far.
    pub fn see_tail(&mut self, found: u32) -> Result<u32, Broken> {
        let behind = found.wrapping_sub(self.head) < self.waiting();
        match distance(self.head, found, self.entries) {
            Some(count) if !behind => {
                self.tail = found;
                Ok(count)
            }
            _ => Err(Broken { found, from: self.tail, to: self.head.wrapping_add(self.entries) }),
        }
    }

    /// Take the next entry: its slot. `None` where none waits.
    pub fn take(&mut self) -> Option<u32> {
        if self.waiting() == 0 {
            return None;
        }
        let taken = slot(self.head, self.entries);
        self.head = self.head.wrapping_add(1);
        Some(taken)
    }
}
