//! Memory that is registered with a device.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use dma_engine_uapi::{Export, RegisterMemory, Unregister, address};
use stepccl_memory::Segment;

use super::command::{self, Command};
use super::{Device, DeviceError};
use crate::RingError;

/// A part of a segment that the driver may read or write. It keeps device and segment.
#[derive(Debug)]
pub struct Region {
    device: Arc<Device>,
    segment: Arc<Segment>,
    id: u32,
    bytes: u64,
    properties: u32,
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
        Ok(Self {
            device: device.clone(),
            segment: segment.clone(),
            id: argument.region,
            bytes: bytes as u64,
            properties: argument.properties,
        })
    }

    /// Its id, good for this device only.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bits of `dma_engine_uapi::command::properties`.
    #[must_use]
    pub const fn properties(&self) -> u32 {
        self.properties
    }

    /// The segment that it is a part of.
    #[must_use]
    pub const fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Address of a byte of it, for descriptors. `None` where there is no such byte.
    #[must_use]
    pub fn address(&self, offset: u64) -> Option<u64> {
        address::address(self.id, offset).filter(|_| offset < self.bytes)
    }

    /// A file that stands for the right to `bytes` bytes from `offset` on (0: all of them), with rights
    /// of `dma_engine_uapi::command::access`. Whoever gets it may import them, until the region ends.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Command`].
    pub fn export(&self, offset: u64, bytes: u64, access: u32) -> Result<OwnedFd, DeviceError> {
        let mut argument =
            Export { region: self.id, access, offset, length: bytes, ..Export::default() };
        command::export(self.device.fd(), &mut argument)
            .map_err(|errno| DeviceError::Command { command: Export::NAME, errno })
    }

    /// Unregister it: returns when no operation uses the memory any more.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Command`].
    pub fn unregister(mut self) -> Result<(), DeviceError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), DeviceError> {
        match std::mem::take(&mut self.id) {
            0 => Ok(()),
            region => self.device.run(&mut Unregister { region, ..Unregister::default() }),
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // The driver lets go of it at the latest when the file is closed.
        let _ = self.end();
    }
}
