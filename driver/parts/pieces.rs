// SPDX-License-Identifier: GPL-2.0

//! Split a copy where its source or its destination is not contiguous any more.

/// Memory in contiguous extents.
pub trait Extents {
    /// Address of the byte at `offset`, and how many bytes are contiguous from there: at least one
    /// where the offset lies in the memory.
    fn at(&self, offset: u64) -> (u64, u64);
}

/// One contiguous copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Address of the first byte read.
    pub from: u64,
    /// Address of the first byte written.
    pub to: u64,
    /// Bytes.
    pub length: u64,
}

/// The pieces of one copy, in order.
#[derive(Clone, Copy, Debug)]
pub struct Pieces<'a, S: ?Sized, D: ?Sized> {
    source: &'a S,
    source_at: u64,
    destination: &'a D,
    destination_at: u64,
    left: u64,
    longest: u64,
}

impl<'a, S: Extents + ?Sized, D: Extents + ?Sized> Pieces<'a, S, D> {
    /// The copy of `length` bytes, no piece of it longer than `longest`. Both ranges lie in their
    /// memory.
    pub fn new(source: (&'a S, u64), destination: (&'a D, u64), length: u64, longest: u64) -> Self {
        Self {
            source: source.0,
            source_at: source.1,
            destination: destination.0,
            destination_at: destination.1,
            left: length,
            longest: longest.max(1),
        }
    }

    /// Bytes that are still to come.
    pub const fn left(&self) -> u64 {
        self.left
    }
}

impl<S: Extents + ?Sized, D: Extents + ?Sized> Iterator for Pieces<'_, S, D> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.left == 0 {
            return None;
        }
        let (from, readable) = self.source.at(self.source_at);
        let (to, writable) = self.destination.at(self.destination_at);
        let length = self.left.min(readable).min(writable).min(self.longest);
        // An offset outside its memory: end rather than go round for ever.
        if length == 0 {
            self.left = 0;
            return None;
        }
        self.source_at += length;
        self.destination_at += length;
        self.left -= length;
        Some(Piece { from, to, length })
    }
}
