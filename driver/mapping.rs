// SPDX-License-Identifier: GPL-2.0

//! Pinned pages as one device sees them.

use crate::{
    abi::command::access,
    channels::Channels,
    helpers::{
        dma_engine_map, dma_engine_next_segment, dma_engine_segment_address,
        dma_engine_segment_length, dma_engine_unmap,
    },
    parts::segments::{Segment, Segments},
    pins::Pins,
};
use core::ptr::NonNull;
use kernel::{
    alloc::flags::__GFP_NOWARN, bindings, dma::DataDirection, error::to_result, ffi::c_int,
    prelude::*, sync::Arc,
};

/// Pages mapped for a device. Dropping it sleeps.
///
/// # Invariants
///
/// `table` is mapped for `device`, which `_channels` keeps.
pub(crate) struct Mapping {
    device: NonNull<bindings::device>,
    table: KBox<bindings::sg_table>,
    direction: c_int,
    segments: KVVec<Segment>,
    _channels: Arc<Channels>,
}

// SAFETY: A mapping does not belong to a thread.
unsafe impl Send for Mapping {}
// SAFETY: Nothing is changed through a shared reference.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Map pages for every device that has a channel; one that refuses them is left out.
    pub(crate) fn for_all(channels: &Arc<Channels>, pins: &mut Pins, rights: u32) -> KVec<Self> {
        let mut mappings = KVec::new();
        for device in channels.devices() {
            let made = Self::new(channels, device, pins, rights);
            if made.and_then(|made| Ok(mappings.push(made, GFP_KERNEL_ACCOUNT)?)).is_err() {
                pr_debug!("a region cannot be mapped for a device: the CPU copies\n");
            }
        }
        mappings
    }

    fn new(
        channels: &Arc<Channels>,
        device: NonNull<bindings::device>,
        pins: &mut Pins,
        rights: u32,
    ) -> Result<Self> {
        let direction = match rights {
            access::READ => DataDirection::ToDevice,
            access::WRITE => DataDirection::FromDevice,
            _ => DataDirection::Bidirectional,
        } as c_int;
        let mut table = KBox::new(pin_init::zeroed::<bindings::sg_table>(), GFP_KERNEL_ACCOUNT)?;
        let count = u32::try_from(pins.count()).map_err(|_| EINVAL)?;
        // SAFETY: The device is there while the channels are, the pages are pinned, and the table
        // is empty.
        to_result(unsafe {
            dma_engine_map(device.as_ptr(), &mut *table, pins.pages(), count, direction)
        })?;
        // INVARIANT: It was just mapped.
        let mut mapping =
            Self { device, table, direction, segments: KVVec::new(), _channels: channels.clone() };
        mapping.list()?;
        Ok(mapping)
    }

    fn list(&mut self) -> Result {
        let mut segment = self.table.sgl;
        let mut start = 0;
        for _ in 0..self.table.nents {
            // SAFETY: One of the mapped segments of the table, of which there are so many.
            let (address, length) = unsafe {
                (dma_engine_segment_address(segment), dma_engine_segment_length(segment).into())
            };
            let made = Segment { start, address, length };
            self.segments.push(made, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
            start += length;
            // SAFETY: As above.
            segment = unsafe { dma_engine_next_segment(segment) };
        }
        Ok(())
    }

    /// The device that it is for.
    pub(crate) fn device(&self) -> NonNull<bindings::device> {
        self.device
    }

    /// Where things are for the device, from the first byte of the first page on.
    pub(crate) fn segments(&self) -> Segments<'_> {
        Segments(&self.segments)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: Mapped by the type invariant. Whoever drops it has seen to it that no channel
        // uses it any more.
        unsafe { dma_engine_unmap(self.device.as_ptr(), &mut *self.table, self.direction) };
    }
}
