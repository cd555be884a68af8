//! The kernel ABI of `/dev/dma_device`, mirrored from `include/dma_engine.h`.
//!
//! The header is the truth and has the prose; this mirror is layout, numbers and pure arithmetic
//! for the driver and the runtime. `tests/layout.rs` compiles the header and compares every size,
//! offset and number.
#![no_std]
#![forbid(unsafe_code)]

pub mod abi;

pub use abi::*;

/// Every command: its number, and the size of its struct in this version.
pub const COMMANDS: [(u32, usize); 11] = [
    (ioctl::QUERY, size_of::<Query>()),
    (ioctl::RING_SETUP, size_of::<RingSetup>()),
    (ioctl::ENTER, size_of::<Enter>()),
    (ioctl::SUBMIT, size_of::<Submit>()),
    (ioctl::REGISTER_MEMORY, size_of::<RegisterMemory>()),
    (ioctl::REGISTER_DMABUF, size_of::<RegisterDmabuf>()),
    (ioctl::EXPORT, size_of::<Export>()),
    (ioctl::IMPORT, size_of::<Import>()),
    (ioctl::UNREGISTER, size_of::<Unregister>()),
    (ioctl::ATTACH_EVENTFD, size_of::<AttachEventfd>()),
    (ioctl::ATTACH_PROXY, size_of::<AttachProxy>()),
];
