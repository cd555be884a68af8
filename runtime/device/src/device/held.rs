//! An id that the driver gave a device, and what it said about the memory behind it.

use std::sync::Arc;

use dma_engine_uapi::{Unregister, address};

use super::{Device, DeviceError};

/// A region or an import. It keeps the device, and ends with this at the latest.
#[derive(Debug)]
pub(super) struct Held {
    pub device: Arc<Device>,
    /// 0: it has ended.
    pub id: u32,
    pub bytes: u64,
    pub properties: u32,
}

impl Held {
    /// Address of a byte of it, for descriptors. `None` where there is no such byte.
    pub fn address(&self, offset: u64) -> Option<u64> {
        address::address(self.id, offset).filter(|_| offset < self.bytes)
    }

    /// Returns when no operation uses the memory any more.
    pub fn end(&mut self) -> Result<(), DeviceError> {
        match std::mem::take(&mut self.id) {
            0 => Ok(()),
            region => self.device.run(&mut Unregister { region, ..Unregister::default() }),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The driver lets go of it at the latest when the file is closed.
        let _ = self.end();
    }
}
