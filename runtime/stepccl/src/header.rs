//! What is in front of a message in its first slot, where the engine has no boards.

use crate::geometry::HEADER_BYTES;

const MAGIC: u32 = 0x5343_4d31;

/// Tag and length of a message, as bytes.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Header(pub [u8; HEADER_BYTES]);

impl Header {
    pub fn new(tag: i32, bytes: u64) -> Self {
        let mut h = [0; HEADER_BYTES];
        h[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        h[4..8].copy_from_slice(&tag.to_le_bytes());
        h[8..16].copy_from_slice(&bytes.to_le_bytes());
        Self(h)
    }

    /// Tag and bytes, where this is a header at all.
    pub fn read(&self) -> Option<(i32, u64)> {
        let word =
            |at: usize| -> [u8; 4] { [self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]] };
        let low = u64::from(u32::from_le_bytes(word(8)));
        let high = u64::from(u32::from_le_bytes(word(12)));
        (u32::from_le_bytes(word(0)) == MAGIC)
            .then(|| (i32::from_le_bytes(word(4)), high << 32 | low))
    }
}
