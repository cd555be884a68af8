//! Memory that a device offers for mapping.

use std::fmt;
use std::os::fd::{AsFd, AsRawFd};

use memmap2::{MmapOptions, MmapRaw};

use crate::{Memory, MemoryError, View};

/// A mapping of a device file, shared with its driver, for reads and writes.
///
/// A file has no length here; it is the driver that promises the bytes it was asked for.
pub struct DeviceMapping {
    map: MmapRaw,
}

impl DeviceMapping {
    /// Map `bytes` bytes at `offset` of a device whose driver keeps them mapped: one that takes
    /// pages away again could make this process fault.
    ///
    /// # Errors
    ///
    /// [`MemoryError::System`] where the driver refuses.
    pub fn new(device: impl AsFd, offset: u64, bytes: usize) -> Result<Self, MemoryError> {
        let fd = device.as_fd().as_raw_fd();
        let map = MmapOptions::new().offset(offset).len(bytes).map_raw(fd);
        Ok(Self { map: map.map_err(MemoryError::io("mmap"))? })
    }
}

impl Memory for DeviceMapping {
    fn view(&self) -> View<'_> {
        // SAFETY:
        // - The mapping has so many readable and writable bytes and lives as long as the borrow.
        // - Nobody makes references to these bytes: this crate hands out none but to atomics.
        unsafe { View::from_raw(self.map.as_mut_ptr(), self.map.len()) }
    }
}

impl fmt::Debug for DeviceMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceMapping").field("bytes", &self.map.len()).finish()
    }
}
