// SPDX-License-Identifier: GPL-2.0

//! The memory of a ring, which user space writes at any time.
//!
//! Every access is one atomic load or store of a word; there is never a reference to plain memory.

use crate::helpers::{
    dma_engine_remap, dma_engine_vfree, dma_engine_vma_offset, dma_engine_vmalloc_user,
};
use core::ptr::NonNull;
use kernel::{
    error::to_result,
    mm::virt::VmaNew,
    prelude::*,
    sync::atomic::{Atomic, Relaxed},
};

/// Zeroed memory that can be mapped.
///
/// # Invariants
///
/// `base` has `bytes` bytes of `vmalloc_user`, page-aligned, for as long as this lives.
pub(crate) struct Shared {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: All accesses are atomics.
unsafe impl Send for Shared {}
// SAFETY: All accesses are atomics.
unsafe impl Sync for Shared {}

impl Shared {
    /// `bytes` bytes, a multiple of the page size.
    pub(crate) fn new(bytes: usize) -> Result<Self> {
        // SAFETY: Allocating has no conditions.
        let base = unsafe { dma_engine_vmalloc_user(bytes) };
        // INVARIANT: It was just allocated.
        Ok(Self { base: NonNull::new(base.cast()).ok_or(ENOMEM)?, bytes })
    }

    /// A word at an offset that is a multiple of 4; the first one where it is not inside.
    pub(crate) fn word(&self, offset: u32) -> &Atomic<u32> {
        let offset = self.inside(offset as usize, 4);
        // SAFETY: Inside the memory and aligned; everybody else uses atomics too, or is user space.
        unsafe { Atomic::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    /// Words of 8 bytes at an offset that is a multiple of their size; the first ones where they
    /// are not inside.
    fn longs<const WORDS: usize>(&self, offset: usize) -> &[Atomic<u64>; WORDS] {
        let offset = self.inside(offset, WORDS * 8);
        // SAFETY: As in `word`; the layout is that of as many `u64`.
        unsafe { &*self.base.as_ptr().add(offset).cast() }
    }

    fn inside(&self, offset: usize, bytes: usize) -> usize {
        let ends = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        if ends && offset % bytes == 0 { offset } else { 0 }
    }

    /// Copy words of 8 bytes out, each once.
    pub(crate) fn read<const WORDS: usize>(&self, offset: usize) -> [u64; WORDS] {
        self.longs(offset).each_ref().map(|word| word.load(Relaxed))
    }

    /// Copy words of 8 bytes in.
    pub(crate) fn write<const WORDS: usize>(&self, offset: usize, words: [u64; WORDS]) {
        for (place, word) in self.longs::<WORDS>(offset).iter().zip(words) {
            place.store(word, Relaxed);
        }
    }

    /// Map all of it, as the interface says: shared, whole, not executable, not inherited.
    pub(crate) fn map(&self, area: &VmaNew) -> Result {
        // SAFETY: The area is being set up.
        let offset = unsafe { dma_engine_vma_offset(area.as_ptr()) };
        let shared = area.flags() & kernel::mm::virt::flags::SHARED != 0;
        if offset != 0 || area.end() - area.start() != self.bytes || !shared {
            return Err(EINVAL);
        }
        if area.executable() || !area.readable() || !area.writable() {
            return Err(EACCES);
        }
        area.try_clear_mayexec()?;
        area.set_dontcopy();
        area.set_dontexpand();
        area.set_dontdump();
        // SAFETY: The area is being set up, and has the length of the memory, whose pages outlive
        // this struct where they are mapped.
        to_result(unsafe { dma_engine_remap(area.as_ptr(), self.base.as_ptr().cast()) })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: From `vmalloc_user` by the type invariant; pages that are mapped are referenced.
        unsafe { dma_engine_vfree(self.base.as_ptr().cast()) };
    }
}
