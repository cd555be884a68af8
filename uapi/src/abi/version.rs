//! Versions, feature bits and the device node.

/// Version of the interface that this mirror describes.
pub const ABI_VERSION: u32 = 1;
/// Oldest peer this mirror is written for.
pub const ABI_OLDEST: u32 = 1;

/// Path of the device node.
pub const DEVICE: &str = "/dev/dma_device";

/// Whether a caller and a driver understand one another.
///
/// Each side has a version and the oldest version of the other side that it accepts.
#[must_use]
pub const fn compatible(
    abi_version: u32,
    abi_oldest: u32,
    driver_version: u32,
    driver_oldest: u32,
) -> bool {
    driver_version >= abi_oldest && abi_version >= driver_oldest
}

/// Bits of [`super::Query::features`].
pub mod feature {
    /// At least one hardware channel is in use.
    pub const CHANNELS: u64 = 1 << 0;
    /// Filling is known.
    pub const FILL: u64 = 1 << 1;
    /// The two signal flags of entries are known.
    pub const SIGNAL: u64 = 1 << 2;
    /// A dma-buf can be registered.
    pub const DMABUF: u64 = 1 << 3;
    /// Channels may reach memory of other devices without passing through host memory.
    pub const PEER: u64 = 1 << 4;
    /// Regions can be exported and imported.
    pub const EXPORT: u64 = 1 << 5;
    /// A proxy can be attached.
    pub const PROXY: u64 = 1 << 6;
    /// A polling thread can be asked for.
    pub const POLL: u64 = 1 << 7;
}
