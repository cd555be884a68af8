//! Bounds-checked access to memory that others write.
//!
//! See the two laws in the documentation of the crate. This file has all of its pointer
//! arithmetic; what it returns is either a copy, an atomic, or a raw pointer whose range was
//! checked.

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use crate::MemoryError;

/// A piece of shared memory. Cheap to copy; the memory outlives it.
#[derive(Clone, Copy)]
pub struct View<'a> {
    base: *mut u8,
    bytes: usize,
    memory: PhantomData<&'a ()>,
}

// SAFETY:
// - A view is a range of memory that is made to be used by several threads and processes at once;
//   every access through it is an atomic, a volatile access or a bulk copy by raw pointer.
unsafe impl Send for View<'_> {}
// SAFETY:
// - As for `Send`: no access through a view needs to be alone.
unsafe impl Sync for View<'_> {}

impl<'a> View<'a> {
    /// View of `bytes` bytes at `base`.
    ///
    /// # Safety
    ///
    /// For all of `'a`, the bytes must be valid for reads and writes, and nobody may hold a
    /// reference to them other than to atomics.
    #[must_use]
    pub const unsafe fn from_raw(base: *mut u8, bytes: usize) -> Self {
        Self { base, bytes, memory: PhantomData }
    }

    /// Length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// First of `bytes` bytes at `offset`, all inside the view. Whoever uses the pointer obeys
    /// the laws of the crate and keeps to the range.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`].
    pub const fn range(&self, offset: usize, bytes: usize) -> Result<*mut u8, MemoryError> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(self.base.wrapping_add(offset)),
            _ => Err(MemoryError::OutOfBounds { offset, bytes, limit: self.bytes }),
        }
    }

    /// The part of `bytes` bytes at `offset`.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`].
    pub fn part(&self, offset: usize, bytes: usize) -> Result<Self, MemoryError> {
        let base = self.range(offset, bytes)?;
        Ok(Self { base, bytes, memory: PhantomData })
    }

    /// Byte at `offset`.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`].
    pub fn atomic_u8(&self, offset: usize) -> Result<&'a AtomicU8, MemoryError> {
        let word = self.word(offset, size_of::<AtomicU8>())?;
        // SAFETY:
        // - `word` checked that the byte lies in the view, which is valid for all of `'a`.
        // - Others touch it by atomics or not at all, by the contract of `from_raw`.
        Ok(unsafe { AtomicU8::from_ptr(word) })
    }

    /// Word of 4 bytes at `offset`.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`]; [`MemoryError::Misaligned`].
    pub fn atomic_u32(&self, offset: usize) -> Result<&'a AtomicU32, MemoryError> {
        let word = self.word(offset, size_of::<AtomicU32>())?;
        // SAFETY:
        // - `word` checked the bounds and the alignment of the address itself; the view is valid
        //   for all of `'a`.
        // - Others touch it by atomics or not at all, by the contract of `from_raw`.
        Ok(unsafe { AtomicU32::from_ptr(word.cast()) })
    }

    /// Word of 8 bytes at `offset`.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`]; [`MemoryError::Misaligned`].
    pub fn atomic_u64(&self, offset: usize) -> Result<&'a AtomicU64, MemoryError> {
        let word = self.word(offset, size_of::<AtomicU64>())?;
        // SAFETY:
        // - `word` checked the bounds and the alignment of the address itself; the view is valid
        //   for all of `'a`.
        // - Others touch it by atomics or not at all, by the contract of `from_raw`.
        Ok(unsafe { AtomicU64::from_ptr(word.cast()) })
    }

    /// `count` words of 8 bytes at `offset`.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`]; [`MemoryError::Misaligned`].
    #[inline]
    pub fn atomic_u64s(&self, offset: usize, count: usize) -> Result<&'a [AtomicU64], MemoryError> {
        let size = size_of::<AtomicU64>();
        let first = self.range(offset, count.saturating_mul(size))?;
        if first.addr() % size != 0 {
            return Err(MemoryError::Misaligned { offset, align: size });
        }
        // SAFETY:
        // - `range` checked that all words lie in the view, which is valid for all of `'a`; the
        //   first is aligned, so all are. A length past the limit saturates and is out of bounds.
        // - Others touch them by atomics or not at all, by the contract of `from_raw`; atomics
        //   may change under a shared reference.
        Ok(unsafe { std::slice::from_raw_parts(first.cast::<AtomicU64>(), count) })
    }

    /// Copy of the 4 bytes at `offset`, read once.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`]; [`MemoryError::Misaligned`].
    pub fn read_u32(&self, offset: usize) -> Result<u32, MemoryError> {
        let word = self.word(offset, size_of::<u32>())?;
        // SAFETY:
        // - In bounds and aligned, as `word` checked; every pattern of bits is a `u32`.
        Ok(unsafe { word.cast::<u32>().read_volatile() })
    }

    /// Copy of the 8 bytes at `offset`, read once.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`]; [`MemoryError::Misaligned`].
    pub fn read_u64(&self, offset: usize) -> Result<u64, MemoryError> {
        let word = self.word(offset, size_of::<u64>())?;
        // SAFETY:
        // - In bounds and aligned, as `word` checked; every pattern of bits is a `u64`.
        Ok(unsafe { word.cast::<u64>().read_volatile() })
    }

    /// Write 4 bytes at `offset`.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`]; [`MemoryError::Misaligned`].
    pub fn write_u32(&self, offset: usize, value: u32) -> Result<(), MemoryError> {
        let word = self.word(offset, size_of::<u32>())?;
        // SAFETY:
        // - In bounds and aligned, as `word` checked; the view may be written.
        unsafe { word.cast::<u32>().write_volatile(value) };
        Ok(())
    }

    /// Write 8 bytes at `offset`.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`]; [`MemoryError::Misaligned`].
    pub fn write_u64(&self, offset: usize, value: u64) -> Result<(), MemoryError> {
        let word = self.word(offset, size_of::<u64>())?;
        // SAFETY:
        // - In bounds and aligned, as `word` checked; the view may be written.
        unsafe { word.cast::<u64>().write_volatile(value) };
        Ok(())
    }

    /// Copy all of `from` to `offset`.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`].
    pub fn copy_in(&self, offset: usize, from: &[u8]) -> Result<(), MemoryError> {
        let to = self.range(offset, from.len())?;
        // SAFETY:
        // - Both ranges are valid for `from.len()` bytes.
        // - They do not overlap: nobody holds a reference to memory of a view, and `from` is one.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    /// Copy the bytes at `offset` into all of `to`.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`]; `to` is unchanged then.
    pub fn copy_out(&self, offset: usize, to: &mut [u8]) -> Result<(), MemoryError> {
        let from = self.range(offset, to.len())?;
        // SAFETY:
        // - Both ranges are valid for `to.len()` bytes.
        // - They do not overlap: nobody holds a reference to memory of a view, and `to` is one.
        unsafe { to.as_mut_ptr().copy_from_nonoverlapping(from, to.len()) };
        Ok(())
    }

    /// Address of a word of `size` bytes, in bounds and aligned to its size.
    fn word(&self, offset: usize, size: usize) -> Result<*mut u8, MemoryError> {
        let word = self.range(offset, size)?;
        if word.addr() % size != 0 {
            return Err(MemoryError::Misaligned { offset, align: size });
        }
        Ok(word)
    }
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
