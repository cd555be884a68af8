//! Where a reader has the bytes of a record from.

use std::sync::atomic::{Ordering, fence};

/// Bytes of a record that its writer may change meanwhile. Any function that copies is one.
pub trait Source {
    /// Fill all of `to` with the bytes from `at` on, each word at one go. Whether they are there.
    fn read(&mut self, at: usize, to: &mut [u8]) -> bool;

    /// Order the reads before against those that follow.
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}

impl<F: FnMut(usize, &mut [u8]) -> bool> Source for F {
    fn read(&mut self, at: usize, to: &mut [u8]) -> bool {
        self(at, to)
    }
}
