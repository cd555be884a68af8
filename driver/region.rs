// SPDX-License-Identifier: GPL-2.0

//! A region, and the right of an operation to use it for a while.

use crate::{
    abi::command::properties,
    channels::Channels,
    grant::{Anchor, Grant},
    mapping::Mapping,
    parts::{
        pieces::Extents,
        range::{part, use_of},
        segments::Segments,
    },
    pins::Pins,
    users::Users,
};
use core::{ops::Deref, ptr::NonNull};
use kernel::{
    bindings,
    page::{PAGE_SHIFT, PAGE_SIZE},
    prelude::*,
    sync::{Arc, SetOnce},
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
    /// Operations that use it.
    #[pin]
    users: Users,
    /// Where exports find it.
    anchor: SetOnce<Arc<Anchor>>,
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
                users <- Users::new(),
                anchor: SetOnce::new(),
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
        self.users.add();
        // INVARIANT: It was just counted.
        Ok(Use { region: NonNull::from(self.get_ref()), start: offset, import: None })
    }

    /// The same for an import, among whose users it is counted, too.
    pub(crate) fn begin_for(
        self: Pin<&Self>,
        offset: u64,
        length: u64,
        needs: u32,
        import: &Users,
    ) -> Result<Use, i32> {
        let mut begun = self.begin(offset, length, needs)?;
        import.add();
        // INVARIANT: It was just counted.
        begun.import = Some(NonNull::from(import));
        Ok(begun)
    }

    /// A right to a part of it, with no more rights than it has itself.
    pub(crate) fn grant(
        self: Pin<&Self>,
        access: u32,
        (offset, length): (u64, u64),
    ) -> Result<Grant> {
        if access & !self.access != 0 {
            return Err(EACCES);
        }
        let length = part(offset, length, self.bytes).map_err(crate::errno)?;
        if self.anchor.as_ref().is_none() {
            // Where another thread was faster, its anchor stays.
            self.anchor.populate(Anchor::new(self)?);
        }
        let anchor = self.anchor.as_ref().ok_or(ENOMEM)?.clone();
        let channel = if self.has_channel() { properties::CHANNEL } else { 0 };
        let properties = properties::CPU | properties::REVOCABLE | channel;
        Ok(Grant { anchor, offset, length, access, properties })
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
        if let Some(anchor) = self.anchor.as_ref() {
            anchor.revoke();
        }
        self.users.wait();
    }
}

/// The use of a part of a region by one operation. May be dropped anywhere.
///
/// # Invariants
///
/// `region` counts this use among its users, and waits for them before it goes away; so does the
/// import, where there is one.
pub(crate) struct Use {
    region: NonNull<Region>,
    /// Offset of its first byte in the region.
    start: u64,
    import: Option<NonNull<Users>>,
}

// SAFETY: A use does not belong to a thread.
unsafe impl Send for Use {}

impl Use {
    /// Offset of its first byte in the region.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }
}

impl Deref for Use {
    type Target = Region;

    fn deref(&self) -> &Region {
        // SAFETY: The region is there by the type invariant.
        unsafe { self.region.as_ref() }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.users.remove();
        if let Some(import) = self.import {
            // SAFETY: There by the type invariant.
            unsafe { import.as_ref() }.remove();
        }
    }
}
