// SPDX-License-Identifier: GPL-2.0

//! A region, and the right of an operation to use it for a while.

use crate::{
    channels::Channels,
    mapping::Mapping,
    parts::{pieces::Extents, range::use_of, segments::Segments},
    pins::Pins,
};
use core::{ops::Deref, ptr::NonNull};
use kernel::{
    bindings, new_condvar, new_spinlock_irq,
    page::{PAGE_SHIFT, PAGE_SIZE},
    prelude::*,
    sync::{Arc, CondVar, SpinLockIrq},
};

/// Registered memory. Dropping it waits for the operations that use it, and unpins: it sleeps.
#[pin_data(PinnedDrop)]
pub(crate) struct Region {
    // Dropped before the pages.
    mappings: KVec<Mapping>,
    pins: Pins,
    /// Offset of the first byte in the first page.
    first: u32,
    bytes: u64,
    access: u32,
    /// Operations that use it; may be taken in a callback of a channel.
    #[pin]
    users: SpinLockIrq<u32>,
    #[pin]
    idle: CondVar,
}

impl Region {
    /// A region of `bytes` bytes that begin `first` bytes into the first page.
    pub(crate) fn new(
        channels: &Arc<Channels>,
        mut pins: Pins,
        (first, bytes): (u32, u64),
        access: u32,
    ) -> Result<Pin<KBox<Self>>> {
        let mappings = Mapping::for_all(channels, &mut pins, access);
        KBox::pin_init(
            pin_init!(Self {
                mappings: mappings,
                pins: pins,
                first: first,
                bytes: bytes,
                access: access,
                users <- new_spinlock_irq!(0),
                idle <- new_condvar!(),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Whether a channel can reach it.
    pub(crate) fn has_channel(&self) -> bool {
        !self.mappings.is_empty()
    }

    /// Offset of its first byte in its first page.
    pub(crate) fn first(&self) -> u64 {
        self.first.into()
    }

    /// Its pages as a device sees them; `None` where they are not mapped for it.
    pub(crate) fn seen_by(&self, device: NonNull<bindings::device>) -> Option<Segments<'_>> {
        let mut mappings = self.mappings.iter();
        mappings.find(|mapping| mapping.device() == device).map(Mapping::segments)
    }

    /// Bytes that are pinned for it.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        self.pins.bytes()
    }

    /// Use `length` bytes at `offset`, with all rights of `needs`; the errno where that cannot be.
    pub(crate) fn begin(
        self: Pin<&Self>,
        offset: u64,
        length: u64,
        needs: u32,
    ) -> Result<Use, i32> {
        use_of(offset, length, self.bytes, self.access, needs)?;
        *self.users.lock() += 1;
        // INVARIANT: It was just counted.
        Ok(Use { region: NonNull::from(self.get_ref()) })
    }
}

impl Extents for Region {
    fn at(&self, offset: u64) -> (u64, u64) {
        let byte = u64::from(self.first) + offset;
        let within = byte & (PAGE_SIZE as u64 - 1);
        let page = self.pins.address((byte >> PAGE_SHIFT) as usize);
        if page.is_null() {
            return (0, 0);
        }
        (page as u64 + within, PAGE_SIZE as u64 - within)
    }
}

#[pinned_drop]
impl PinnedDrop for Region {
    fn drop(self: Pin<&mut Self>) {
        let mut users = self.users.lock();
        while *users > 0 {
            self.idle.wait(&mut users);
        }
    }
}

/// The use of a region by one operation. May be dropped anywhere.
///
/// # Invariants
///
/// `region` counts this use among its users, and waits for them before it goes away.
pub(crate) struct Use {
    region: NonNull<Region>,
}

// SAFETY: A use does not belong to a thread.
unsafe impl Send for Use {}

impl Deref for Use {
    type Target = Region;

    fn deref(&self) -> &Region {
        // SAFETY: The region is there by the type invariant.
        unsafe { self.region.as_ref() }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        // Under the lock, which whoever waits must take before the region goes away.
        let mut users = self.users.lock();
        *users -= 1;
        if *users == 0 {
            self.idle.notify_all();
        }
    }
}
