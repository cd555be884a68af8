//! Bytes as a row of choices; where they are used up, every choice is 0.

/// What is left of an input.
#[derive(Debug)]
pub(super) struct Input<'a>(pub &'a [u8]);

impl Input<'_> {
    /// Whether all is used up.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let (head, rest) = self.0.split_at(N.min(self.0.len()));
        self.0 = rest;
        let mut out = [0; N];
        out[..head.len()].copy_from_slice(head);
        out
    }

    /// A number of 8 bits.
    pub(super) fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// A number of 16 bits.
    pub(super) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// A number of 32 bits.
    pub(super) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// A number of 64 bits.
    pub(super) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// A number below `end`, which is above 0 and at most 256.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::from(self.u8()) % end
    }

    /// One of these.
    pub(super) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}
