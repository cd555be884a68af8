//! The ring of a device: the driver is the service.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dma_engine_uapi::ring::NUMA_ANY;
use dma_engine_uapi::{Enter, RingSetup};
use nix::errno::Errno;
use stepccl_memory::DeviceMapping;

use super::command::{self, Command};
use super::{Device, DeviceError};
use crate::{Client, Doorbell, MappedRing, RingError, RingLayout, Side};

/// The client's end of the ring of a device.
#[derive(Debug)]
pub struct DeviceEnd {
    device: Arc<Device>,
    mapped: MappedRing<DeviceMapping>,
    /// Counts the calls that entered the driver; nobody sleeps on it.
    bell: AtomicU32,
}

impl Device {
    /// Make the ring of this file, with `entries` submission slots and twice as many completion
    /// slots. A file has one ring.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Command`] where the driver refuses, [`DeviceError::Ring`] where what it
    /// returns cannot be a ring.
    pub fn ring(self: &Arc<Self>, entries: u32) -> Result<Client<DeviceEnd>, DeviceError> {
        let mut setup =
            RingSetup { sq_entries: entries, numa_node: NUMA_ANY, ..RingSetup::default() };
        self.run(&mut setup)?;
        let layout =
            RingLayout::new(setup.offsets, setup.sq_entries, setup.cq_entries, setup.map_bytes)?;
        let bytes = usize::try_from(setup.map_bytes).unwrap_or(usize::MAX);
        let mapping =
            DeviceMapping::new(&**self, setup.map_offset, bytes).map_err(RingError::from)?;
        let end = DeviceEnd {
            device: self.clone(),
            mapped: MappedRing::new(mapping, layout)?,
            bell: AtomicU32::new(0),
        };
        Ok(Client::new(Arc::new(end), &layout, 0)?)
    }
}

impl DeviceEnd {
    /// The device behind it.
    #[must_use]
    pub const fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The ring as it lies in memory.
    #[must_use]
    pub const fn mapped(&self) -> &MappedRing<DeviceMapping> {
        &self.mapped
    }

    fn enter(&self, enter: Enter) -> Result<(), RingError> {
        let mut enter = enter;
        self.bell.fetch_add(1, Ordering::Relaxed);
        match command::run(self.device.fd(), &mut enter) {
            // The wait is over, which its caller sees in the ring.
            Ok(()) | Err(Errno::ETIME | Errno::EINTR) => Ok(()),
            // The flags say so too.
            Err(Errno::EBADMSG) => Err(RingError::Failed),
            Err(errno) => Err(RingError::System { call: Enter::NAME, errno }),
        }
    }
}

crate::memory::ring_memory_of!(DeviceEnd, mapped);

impl Doorbell for DeviceEnd {
    fn bell(&self, _side: Side) -> u32 {
        self.bell.load(Ordering::Relaxed)
    }

    /// Let the driver take what was published.
    fn ring(&self, _side: Side) -> Result<(), RingError> {
        self.enter(Enter { to_submit: u32::MAX, ..Enter::default() })
    }

    /// Wait for one completion. The driver looks at the queue itself, so nothing is slept through.
    fn sleep(&self, _side: Side, _seen: u32, limit: Duration) -> Result<(), RingError> {
        let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX).min(i64::MAX as u64);
        self.enter(Enter { min_complete: 1, timeout_ns: nanos, ..Enter::default() })
    }

    /// The driver stays as long as the file is open.
    fn other_gone(&self, _side: Side) -> bool {
        false
    }
}
