//! A part of a region that another process has exported.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;

use dma_engine_uapi::Import;

use super::held::Held;
use super::{Device, DeviceError};

/// A part of a region of another file. It keeps the device.
///
/// Its owner can take it away at any time: operations on it then fail with `ESTALE`.
#[derive(Debug)]
pub struct Imported(Held);

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
        Ok(Self(Held {
            device: device.clone(),
            id: argument.region,
            bytes: argument.length,
            properties: argument.properties,
        }))
    }

    /// Length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Bits of `dma_engine_uapi::command::properties`.
    #[must_use]
    pub const fn properties(&self) -> u32 {
        self.0.properties
    }

    /// Address of a byte of it, for descriptors of this device. `None` where there is no such byte.
    #[must_use]
    pub fn address(&self, offset: u64) -> Option<u64> {
        self.0.address(offset)
    }
}
