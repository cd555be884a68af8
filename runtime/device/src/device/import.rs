//! A part of a region that another process has exported.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;

use dma_engine_uapi::{Import, Unregister, address};

use super::{Device, DeviceError};

/// A part of a region of another file. It keeps the device.
///
/// Its owner can take it away at any time: operations on it then fail with `ESTALE`.
#[derive(Debug)]
pub struct Imported {
    device: Arc<Device>,
    id: u32,
    bytes: u64,
    properties: u32,
}

impl Imported {
    /// Take what a file of [`super::Region::export`] gives, with rights of
    /// `dma_engine_uapi::command::access`. The file is not needed afterwards.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Command`].
    pub fn new(
        device: &Arc<Device>,
        file: BorrowedFd<'_>,
        access: u32,
    ) -> Result<Self, DeviceError> {
        let mut argument = Import { fd: file.as_raw_fd(), access, ..Import::default() };
        device.run(&mut argument)?;
        Ok(Self {
            device: device.clone(),
            id: argument.region,
            bytes: argument.length,
            properties: argument.properties,
        })
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

    /// Address of a byte of it, for descriptors of this device. `None` where there is no such byte.
    #[must_use]
    pub fn address(&self, offset: u64) -> Option<u64> {
        address::address(self.id, offset).filter(|_| offset < self.bytes)
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        let mut argument = Unregister { region: self.id, ..Unregister::default() };
        // The driver lets go of it at the latest when the file is closed.
        let _ = self.device.run(&mut argument);
    }
}
