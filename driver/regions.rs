// SPDX-License-Identifier: GPL-2.0

//! The regions of a file, by id.

use crate::{
    abi::{
        address::{offset_of, region_of},
        status::ENOENT as NO_REGION,
    },
    grant::{Grant, Import},
    parts::errno::EOPNOTSUPP,
    parts::slots::{Free, Slot, find},
    region::{Region, Use},
};
use kernel::prelude::*;

/// What an id names. Dropping it sleeps.
pub(crate) enum Held {
    /// A region of this file.
    Own(Pin<KBox<Region>>),
    /// A part of a region of another file.
    Import(Pin<KBox<Import>>),
}

impl Held {
    /// Bytes that this file has pinned for it.
    fn pinned_bytes(&self) -> u64 {
        match self {
            Self::Own(region) => region.pinned_bytes(),
            Self::Import(_) => 0,
        }
    }
}

/// The regions of a file.
pub(crate) struct Regions {
    slots: KVec<Slot>,
    /// What is in each slot.
    held: KVec<Option<Held>>,
    free: Free,
    count: u32,
    /// Charged to the file: pinned, or about to be.
    charged: u64,
}

impl Regions {
    /// No region.
    pub(crate) fn new() -> Self {
        Self { slots: KVec::new(), held: KVec::new(), free: Free::new(), count: 0, charged: 0 }
    }

    /// How many.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Bytes pinned for them.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        self.charged
    }

    /// Charge bytes to the file before they are pinned.
    pub(crate) fn charge(&mut self, bytes: u64, limit: u64) -> Result {
        let charged = self.charged.checked_add(bytes).filter(|sum| *sum <= limit);
        self.charged = charged.ok_or(ENOMEM)?;
        Ok(())
    }

    /// Take such a charge back.
    pub(crate) fn uncharge(&mut self, bytes: u64) {
        self.charged = self.charged.saturating_sub(bytes);
    }

    /// Give a region an id; where there is none, it comes back.
    pub(crate) fn insert(&mut self, region: Held, limit: u32) -> Result<u32, (Error, Held)> {
        if let Err(error) = self.make_room(limit) {
            return Err((error, region));
        }
        let Some(id) = self.free.take(&mut self.slots) else {
            return Err((ENOSPC, region));
        };
        match find(&self.slots, id).and_then(|slot| self.held.get_mut(slot as usize)) {
            Some(place) => *place = Some(region),
            None => return Err((EINVAL, region)),
        }
        self.count += 1;
        Ok(id)
    }

    fn make_room(&mut self, limit: u32) -> Result {
        if self.count >= limit {
            return Err(ENOSPC);
        }
        if self.free.count() > 0 {
            return Ok(());
        }
        let slot = self.slots.len() as u32;
        self.held.push(None, GFP_KERNEL_ACCOUNT)?;
        if let Err(error) = self.slots.push(Slot::new(), GFP_KERNEL_ACCOUNT) {
            self.held.pop();
            return Err(error.into());
        }
        self.free.put(&mut self.slots, slot);
        Ok(())
    }

    /// Take a region out: its id names nothing from then on. Drop it after the lock.
    pub(crate) fn remove(&mut self, id: u32) -> Option<Held> {
        let slot = self.free.end(&mut self.slots, id)?;
        let region = self.held.get_mut(slot as usize)?.take()?;
        self.count -= 1;
        self.uncharge(region.pinned_bytes());
        Some(region)
    }

    /// Use `length` bytes at an address, with all rights of `needs`; the errno where that cannot be.
    pub(crate) fn begin(&self, address: u64, length: u64, needs: u32) -> Result<Use, i32> {
        let slot = find(&self.slots, region_of(address)).ok_or(NO_REGION)?;
        match self.held.get(slot as usize) {
            Some(Some(Held::Own(region))) => {
                region.as_ref().begin(offset_of(address), length, needs)
            }
            Some(Some(Held::Import(import))) => {
                import.as_ref().begin(offset_of(address), length, needs)
            }
            _ => Err(NO_REGION),
        }
    }

    /// A right to a part of a region of this file.
    pub(crate) fn export(&self, id: u32, access: u32, part: (u64, u64)) -> Result<Grant> {
        let slot = find(&self.slots, id).ok_or(ENOENT)?;
        match self.held.get(slot as usize) {
            Some(Some(Held::Own(region))) => region.as_ref().grant(access, part),
            Some(Some(Held::Import(_))) => Err(crate::errno(EOPNOTSUPP)),
            _ => Err(ENOENT),
        }
    }
}
