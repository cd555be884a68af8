//! Memory of a test that an engine may touch.

use std::alloc;
use std::ptr::NonNull;

use crate::{Address, Engine, RegionId, UserMemory};

/// Alignment of a buffer, so that tests choose the alignment of what lies in it.
const ALIGN: usize = 4096;

/// Registered memory, touched by raw pointer only, as an engine may touch it too.
#[derive(Debug)]
pub(super) struct Buffer {
    base: NonNull<u8>,
    layout: alloc::Layout,
    pub(super) region: RegionId,
}

impl Buffer {
    /// Zeroed memory of `bytes` bytes that `engine` may read, and write if `writable`.
    pub(super) fn new(engine: &mut dyn Engine, bytes: usize, writable: bool) -> Self {
        let layout = alloc::Layout::from_size_align(bytes.max(1), ALIGN).expect("a test's length");
        // SAFETY:
        // - The layout has at least one byte.
        let base = unsafe { alloc::alloc_zeroed(layout) };
        let base = NonNull::new(base).expect("memory for a test");
        let memory =
            UserMemory { base: base.as_ptr(), bytes: bytes as u64, writable, streaming: false };
        // SAFETY:
        // - The memory was just allocated and is freed by `drop`, which comes after `forget` or
        //   after the engine; no references to it are made.
        let region = unsafe { engine.register(memory) }.expect("a region");
        Self { base, layout, region }
    }

    /// Address of a byte.
    pub(super) fn at(&self, offset: usize) -> Address {
        Address::start_of(self.region).checked_add(offset as u64).expect("an offset of a test")
    }

    /// Write `bytes` at `offset`.
    pub(super) fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.layout.size());
        // SAFETY:
        // - The range is inside the allocation, which no reference such as `bytes` points into.
        unsafe {
            let to = self.base.add(offset).as_ptr();
            to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    /// Copy of `bytes` bytes at `offset`.
    pub(super) fn read(&self, offset: usize, bytes: usize) -> Vec<u8> {
        assert!(offset + bytes <= self.layout.size());
        let mut copy = vec![0; bytes];
        // SAFETY:
        // - The range is inside the allocation, which no reference such as `copy` points into.
        unsafe { copy.as_mut_ptr().copy_from_nonoverlapping(self.base.add(offset).as_ptr(), bytes) }
        copy
    }

    /// Unregister and free.
    pub(super) fn forget(self, engine: &mut dyn Engine) {
        engine.unregister(self.region).expect("a region that nothing uses");
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY:
        // - Allocated by `new` with this layout, and freed once.
        unsafe { alloc::dealloc(self.base.as_ptr(), self.layout) }
    }
}
