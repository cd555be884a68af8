// SPDX-License-Identifier: GPL-2.0

//! Memory as a device sees it: a list of segments.

use super::pieces::Extents;

/// One contiguous piece of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset of its first byte in the memory.
    pub start: u64,
    /// Address of that byte for the device.
    pub address: u64,
    /// Bytes.
    pub length: u64,
}

/// Segments in the order of their offsets, without gaps.
#[derive(Clone, Copy, Debug)]
pub struct Segments<'a>(pub &'a [Segment]);

impl Extents for Segments<'_> {
    fn at(&self, offset: u64) -> (u64, u64) {
        let after = self.0.partition_point(|segment| segment.start <= offset);
        match after.checked_sub(1).and_then(|index| self.0.get(index)) {
            Some(segment) if offset - segment.start < segment.length => {
                let within = offset - segment.start;
                (segment.address + within, segment.length - within)
            }
            _ => (0, 0),
        }
    }
}
