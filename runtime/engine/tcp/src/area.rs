//! A piece of memory that the engine may use: a number and a length, checked when cut.

use std::ptr;

/// Memory of this process. Whoever makes one says for how long it is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    base: *mut u8,
    bytes: u64,
}

// SAFETY:
// - An area is a number and a length. Who reads or writes through it upholds what its maker
//   promised, which is about the memory and not about the thread.
unsafe impl Send for Area {}
// SAFETY:
// - As for `Send`; shared areas are only cut and copied.
unsafe impl Sync for Area {}

impl Area {
    /// The `bytes` bytes at `base`.
    ///
    /// # Safety
    ///
    /// They are valid for reads and writes (for reads only, where the area is only sent from)
    /// until the engine was told otherwise: its transfers are ended or cancelled, or its thread has
    /// ended. No safe reference may alias them.
    pub(crate) const unsafe fn new(base: *mut u8, bytes: u64) -> Self {
        Self { base, bytes }
    }

    /// First byte.
    pub(crate) const fn base(&self) -> *mut u8 {
        self.base
    }

    /// Length in bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The part from `offset` on of `bytes` bytes, where there are so many.
    pub(crate) fn part(&self, offset: u64, bytes: u64) -> Option<Self> {
        if bytes > self.bytes || offset > self.bytes - bytes {
            return None;
        }
        // The offset fits: it lies in memory that is there.
        Some(Self { base: self.base.wrapping_add(offset as usize), bytes })
    }

    /// Copy `bytes` into the area, as many as fit.
    pub(crate) fn write(&self, bytes: &[u8]) {
        let count = bytes.len().min(usize::try_from(self.bytes).unwrap_or(usize::MAX));
        // SAFETY:
        // - `new` was promised that the area is valid for writes while the engine uses it, and no
        //   reference such as `bytes` points into it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.base, count) }
    }

    /// Copy the first bytes of the area to `bytes`, as many as there are.
    #[cfg(test)]
    pub(crate) fn read(&self, bytes: &mut [u8]) {
        let count = bytes.len().min(usize::try_from(self.bytes).unwrap_or(usize::MAX));
        // SAFETY:
        // - `new` was promised that the area is valid for reads, and no reference such as `bytes`
        //   points into it.
        unsafe { ptr::copy_nonoverlapping(self.base, bytes.as_mut_ptr(), count) }
    }

    /// Whether every byte is 0. Another thread may write meanwhile; the answer is then of some
    /// moment of each word.
    pub(crate) fn is_zero(&self) -> bool {
        // A rest of less than a word is not worth a look.
        self.bytes.is_multiple_of(8)
            && (0..self.bytes / 8).all(|at| {
                let word = self.base.wrapping_add(at as usize * 8).cast::<u64>();
                // SAFETY:
                // - The word lies in the area, which `new` was promised is valid for reads.
                unsafe { word.read_unaligned() == 0 }
            })
    }
}
