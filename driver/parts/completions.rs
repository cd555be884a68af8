// SPDX-License-Identifier: GPL-2.0

//! The driver's half of the completion queue: every entry taken has a slot set aside.

use super::submissions::Broken;
use crate::abi::ring::{head_may_move, slot};

/// Which slots of the completion queue are filled, set aside and free.
#[derive(Clone, Copy, Debug)]
pub struct Completions {
    entries: u32,
    /// Newest head that the caller told.
    head: u32,
    /// Next slot to fill.
    tail: u32,
    /// Slots set aside.
    reserved: u32,
}

impl Completions {
    /// An empty queue of `entries`, a power of two.
    pub const fn new(entries: u32) -> Self {
        Self { entries, head: 0, tail: 0, reserved: 0 }
    }

    /// Next slot to fill: what the shared tail says.
    pub const fn tail(&self) -> u32 {
        self.tail
    }

    /// Slots set aside: entries taken and not complete.
    pub const fn reserved(&self) -> u32 {
        self.reserved
    }

    /// Slots of the queue.
    pub const fn entries(&self) -> u32 {
        self.entries
    }

    /// Completions that the caller has not read.
    pub const fn ready(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// Slots neither filled nor set aside. Own indices only, so there are never fewer than none.
    pub const fn room(&self) -> u32 {
        self.entries - self.ready() - self.reserved
    }

    /// Believe a head of the caller, where it is possible.
    ///
    /// # Errors
    ///
    /// [`Broken`]: the head went backwards or past the tail.
    pub fn see_head(&mut self, found: u32) -> Result<(), Broken> {
        if !head_may_move(self.head, found, self.tail) {
            return Err(Broken { found, from: self.head, to: self.tail });
        }
        self.head = found;
        Ok(())
    }

    /// Set up to `wanted` slots aside; returns how many.
    pub fn reserve(&mut self, wanted: u32) -> u32 {
        let count = wanted.min(self.room());
        self.reserved += count;
        count
    }

    /// Give back slots that were set aside and are not needed.
    pub fn give_back(&mut self, count: u32) {
        self.reserved = self.reserved.saturating_sub(count);
    }

    /// Fill the next slot with one that was set aside: its number. `None` where none was.
    pub fn post(&mut self) -> Option<u32> {
        self.reserved = self.reserved.checked_sub(1)?;
        let filled = slot(self.tail, self.entries);
        self.tail = self.tail.wrapping_add(1);
        Some(filled)
    }
}
