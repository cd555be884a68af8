// SPDX-License-Identifier: GPL-2.0

//! The right to a part of a region of another file: what an export gives and an import takes.

use crate::{
    abi::status::ESTALE,
    parts::range::use_of,
    region::{Region, Use},
    users::Users,
};
use core::ptr::NonNull;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{Arc, Mutex},
};

/// Where a region is, until its owner takes it away.
#[pin_data]
pub(crate) struct Anchor {
    #[pin]
    region: Mutex<Option<NonNull<Region>>>,
}

// SAFETY: The pointer is used under the lock only, and a region does not belong to a thread.
unsafe impl Send for Anchor {}
// SAFETY: As for `Send`.
unsafe impl Sync for Anchor {}

impl Anchor {
    /// The anchor of a region, which calls [`Self::revoke`] before it goes away.
    pub(crate) fn new(region: Pin<&Region>) -> Result<Arc<Self>> {
        let region = NonNull::from(region.get_ref());
        Arc::pin_init(pin_init!(Self { region <- new_mutex!(Some(region)) }), GFP_KERNEL_ACCOUNT)
    }

    /// Nobody gets at the region from here on; those who use it already do so.
    pub(crate) fn revoke(&self) {
        *self.region.lock() = None;
    }

    fn is_revoked(&self) -> bool {
        self.region.lock().is_none()
    }
}

/// A part of a region, and the rights on it.
pub(crate) struct Grant {
    pub(crate) anchor: Arc<Anchor>,
    /// First byte of the part in the region.
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) access: u32,
    pub(crate) properties: u32,
}

/// A grant that a file has taken, with all or some of its rights. Dropping it waits for the operations
/// of that file that use it: it sleeps.
#[pin_data(PinnedDrop)]
pub(crate) struct Import {
    grant: Arc<Grant>,
    access: u32,
    #[pin]
    users: Users,
}

impl Import {
    /// Take a grant.
    pub(crate) fn new(grant: Arc<Grant>, access: u32) -> Result<Pin<KBox<Self>>> {
        if access & !grant.access != 0 {
            return Err(EACCES);
        }
        if grant.anchor.is_revoked() {
            return Err(crate::errno(ESTALE));
        }
        let import = pin_init!(Self { grant: grant, access: access, users <- Users::new() });
        KBox::pin_init(import, GFP_KERNEL_ACCOUNT)
    }

    /// Use `length` bytes at `offset` of the part; the errno where that cannot be.
    pub(crate) fn begin(
        self: Pin<&Self>,
        offset: u64,
        length: u64,
        needs: u32,
    ) -> Result<Use, i32> {
        use_of(offset, length, self.grant.length, self.access, needs)?;
        let region = self.grant.anchor.region.lock();
        let found = (*region).ok_or(ESTALE)?;
        // SAFETY: The region revokes its anchor, under this lock, before it goes away; it is pinned.
        let found = unsafe { Pin::new_unchecked(found.as_ref()) };
        found.begin_for(self.grant.offset + offset, length, needs, &self.get_ref().users)
    }
}

#[pinned_drop]
impl PinnedDrop for Import {
    fn drop(self: Pin<&mut Self>) {
        self.users.wait();
    }
}
