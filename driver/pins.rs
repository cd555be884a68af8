// SPDX-License-Identifier: GPL-2.0

//! Pages of a process that stay where they are.

use crate::{
    helpers::{
        dma_engine_charge, dma_engine_memlock_limit, dma_engine_page_address, dma_engine_pin,
        dma_engine_pinned, dma_engine_uncharge, dma_engine_unpin,
    },
    parts::range::Pages,
};
use kernel::{
    alloc::flags::__GFP_NOWARN,
    bindings,
    ffi::{c_int, c_ulong},
    mm::Mm,
    page::PAGE_SIZE,
    prelude::*,
    sync::aref::ARef,
};

/// Pages asked for at once, so that others can run in between.
const BATCH: usize = 4096;

/// A pinned page.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct PinnedPage(*mut bindings::page);

// SAFETY: A pinned page does not belong to a thread.
unsafe impl Send for PinnedPage {}
// SAFETY: Nothing is changed through a shared reference.
unsafe impl Sync for PinnedPage {}

/// Pages pinned with `FOLL_LONGTERM` and charged to their address space; dropping it sleeps.
///
/// # Invariants
///
/// The first `pinned` of `pages` are pinned. `charged` pages are charged to `mm`.
pub(crate) struct Pins {
    pages: KVVec<PinnedPage>,
    pinned: usize,
    charged: usize,
    write: bool,
    mm: ARef<Mm>,
}

impl Pins {
    /// Pin pages of the current process, whose address space is `mm`.
    pub(crate) fn new(mm: &ARef<Mm>, pages: &Pages, write: bool) -> Result<Self> {
        let count = usize::try_from(pages.count).map_err(|_| EINVAL)?;
        // INVARIANT: Nothing is pinned or charged yet.
        let mut pins = Self { pages: KVVec::new(), pinned: 0, charged: 0, write, mm: mm.clone() };
        let limit = dma_engine_memlock_limit() / PAGE_SIZE;
        // SAFETY: The address space is referenced.
        if !unsafe { dma_engine_charge(mm.as_raw(), count, limit) } {
            return Err(ENOMEM);
        }
        // INVARIANT: `count` pages were just charged.
        pins.charged = count;
        let flags = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
        pins.pages.resize(count, PinnedPage(core::ptr::null_mut()), flags)?;
        // A failure drops `pins`, which gives back what was pinned and charged so far.
        while pins.pinned < count {
            pins.pin_some(pages.start as usize)?;
        }
        Ok(pins)
    }

    fn pin_some(&mut self, start: usize) -> Result {
        let address = start + self.pinned * PAGE_SIZE;
        let rest = self.pages.get_mut(self.pinned..).ok_or(EINVAL)?;
        let count = rest.len().min(BATCH);
        // SAFETY: `rest` has room for `count` pages, and `PinnedPage` is a page pointer.
        let got = unsafe {
            dma_engine_pin(address, count as c_int, self.write, rest.as_mut_ptr().cast())
        };
        match got {
            // INVARIANT: So many more are pinned.
            1.. => self.pinned += got as usize,
            0 => return Err(EFAULT),
            _ => return Err(pin_error(Error::from_errno(got))),
        }
        if kernel::current!().signal_pending() && self.pinned < self.pages.len() {
            return Err(EINTR);
        }
        Ok(())
    }

    /// How many.
    pub(crate) fn count(&self) -> usize {
        self.pages.len()
    }

    /// The list of them, to be read as long as the pins are borrowed.
    pub(crate) fn pages(&mut self) -> *mut *mut bindings::page {
        self.pages.as_mut_ptr().cast()
    }

    /// Bytes of the pages.
    pub(crate) fn bytes(&self) -> u64 {
        (self.pages.len() * PAGE_SIZE) as u64
    }

    /// Where the kernel sees the page of an index; null where there is none.
    pub(crate) fn address(&self, index: usize) -> *mut u8 {
        match self.pages.get(index) {
            // SAFETY: All pages are pinned once `new` has returned.
            Some(page) => unsafe { dma_engine_page_address(page.0) }.cast(),
            None => core::ptr::null_mut(),
        }
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        let pages = self.pages.as_mut_ptr().cast();
        // SAFETY: The first `pinned` pages are pinned by the type invariant, and whoever drops the
        // pins has seen to it that nobody touches them any more.
        unsafe { dma_engine_unpin(pages, self.pinned as c_ulong, self.write) };
        // SAFETY: `charged` pages are charged by the type invariant; the address space is
        // referenced.
        unsafe { dma_engine_uncharge(self.mm.as_raw(), self.charged) };
    }
}

/// What the ABI says about memory that cannot be pinned.
fn pin_error(error: Error) -> Error {
    if error == ENOMEM || error == EINTR { error } else { EFAULT }
}

/// Bytes pinned on account of an address space, by any driver.
pub(crate) fn pinned_bytes(mm: &Mm) -> u64 {
    // SAFETY: The address space is referenced.
    (unsafe { dma_engine_pinned(mm.as_raw()) } as u64).saturating_mul(PAGE_SIZE as u64)
}
