//! Memory that is registered with a device.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use dma_engine_uapi::{Export, RegisterMemory};
use stepccl_memory::Segment;

use super::command::{self, Command};
use super::held::Held;
use super::{Device, DeviceError};
use crate::RingError;

/// A part of a segment that the driver may read or write. It keeps device and segment.
#[derive(Debug)]
pub struct Region {
    // Dropped before the segment.
    held: Held,
    segment: Arc<Segment>,
}

impl Region {
    /// Register `bytes` bytes at `offset` of a segment with rights of
    /// `dma_engine_uapi::command::access`.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Ring`] where the range leaves the segment, [`DeviceError::Command`].
    pub fn new(
        device: &Arc<Device>,
        segment: &Arc<Segment>,
        offset: usize,
        bytes: usize,
        access: u32,
    ) -> Result<Self, DeviceError> {
        let base = segment.view().range(offset, bytes).map_err(RingError::from)?;
        let mut argument = RegisterMemory {
            address: base as u64,
            length: bytes as u64,
            access,
            ..RegisterMemory::default()
        };
        device.run(&mut argument)?;
        let held = Held {
            device: device.clone(),
            id: argument.region,
            bytes: bytes as u64,
            properties: argument.properties,
        };
        Ok(Self { held, segment: segment.clone() })
    }

    /// Its id, good for this device only.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.held.id
    }

    /// Length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.held.bytes
    }

    /// Bits of `dma_engine_uapi::command::properties`.
    #[must_use]
    pub const fn properties(&self) -> u32 {
        self.held.properties
    }

    /// The segment that it is a part of.
    #[must_use]
    pub const fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Address of a byte of it, for descriptors. `None` where there is no such byte.
    #[must_use]
    pub fn address(&self, offset: u64) -> Option<u64> {
        self.held.address(offset)
    }

    /// A file that stands for the right to `bytes` bytes from `offset` on (0: all of them), with rights
    /// of `dma_engine_uapi::command::access`. Whoever gets it may import them, until the region ends.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Command`].
    pub fn export(&self, offset: u64, bytes: u64, access: u32) -> Result<OwnedFd, DeviceError> {
        let mut argument =
            Export { region: self.held.id, access, offset, length: bytes, ..Export::default() };
        command::export(self.held.device.fd(), &mut argument)
            .map_err(|errno| DeviceError::Command { command: Export::NAME, errno })
    }

    /// Unregister it: returns when no operation uses the memory any more.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Command`].
    pub fn unregister(mut self) -> Result<(), DeviceError> {
        self.held.end()
    }
}
