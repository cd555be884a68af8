//! Arguments of the commands. The first field of each is its size in bytes.

use super::descriptor::Descriptor;
use super::ring::RingOffsets;

/// Bits of [`RingSetup::flags`].
pub mod setup_flags {
    /// A thread of the driver looks for entries.
    pub const POLL: u32 = 1 << 0;
}

/// Bits of [`Enter::flags`].
pub mod enter_flags {
    /// Wake the polling thread.
    pub const WAKE: u32 = 1 << 0;
    /// The timeout is a point of `CLOCK_MONOTONIC`.
    pub const ABSOLUTE: u32 = 1 << 1;
}

/// Bits of [`AttachEventfd::flags`].
pub mod eventfd_flags {
    /// Signal only while [`super::super::ring::cq_flags::WAITING`] is set.
    pub const ON_DEMAND: u32 = 1 << 0;
}

/// Rights on a region.
pub mod access {
    /// It may be a source.
    pub const READ: u32 = 1 << 0;
    /// It may be a destination and may be signalled.
    pub const WRITE: u32 = 1 << 1;
    /// All bits that are known.
    pub const ALL: u32 = READ | WRITE;
}

/// What a region is like.
pub mod properties {
    /// The CPU can reach its bytes.
    pub const CPU: u32 = 1 << 0;
    /// At least one hardware channel can.
    pub const CHANNEL: u32 = 1 << 1;
    /// It is memory of a device.
    pub const PEER: u32 = 1 << 2;
    /// Its owner or exporter can take it away.
    pub const REVOCABLE: u32 = 1 << 3;
}

/// `struct dma_engine_query`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Bytes of this struct.
    pub size: u32,
    /// Must be 0.
    pub flags: u32,
    /// Version of the caller.
    pub abi_version: u32,
    /// Oldest driver that the caller accepts.
    pub abi_oldest: u32,
    /// Output: version of the driver.
    pub driver_version: u32,
    /// Output: oldest caller that the driver accepts.
    pub driver_oldest: u32,
    /// Output: bits of [`super::version::feature`].
    pub features: u64,
    /// Output: number of this node.
    pub node: u16,
    /// Must be 0.
    pub reserved: [u16; 3],
    /// Output: hardware channels in use.
    pub channels: u32,
    /// Output: alignment in bytes for a channel to do all of an operation.
    pub copy_align: u32,
    /// Output: most entries of a submission queue.
    pub max_entries: u32,
    /// Output: most operations of one file that run at once.
    pub max_in_flight: u32,
    /// Output: most regions of one file.
    pub max_regions: u32,
    /// Output: milliseconds after which an operation is ended.
    pub op_timeout_ms: u32,
    /// Output: largest region.
    pub max_region_bytes: u64,
    /// Output: most bytes the process may pin.
    pub pinned_limit_bytes: u64,
    /// Output: bytes it has pinned.
    pub pinned_bytes: u64,
}

/// `struct dma_engine_ring_setup`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingSetup {
    /// Bytes of this struct.
    pub size: u32,
    /// Bits of [`setup_flags`].
    pub flags: u32,
    /// Slots for submissions, a power of two.
    pub sq_entries: u32,
    /// Slots for completions, a power of two, or 0 for twice `sq_entries`.
    pub cq_entries: u32,
    /// NUMA node, a hint; [`super::ring::NUMA_ANY`] for none.
    pub numa_node: i32,
    /// Microseconds without work after which the polling thread sleeps.
    pub poll_idle_us: u32,
    /// Output: where things are in the mapping.
    pub offsets: RingOffsets,
    /// Output: offset for mmap.
    pub map_offset: u64,
    /// Output: length for mmap in bytes.
    pub map_bytes: u64,
}

/// `struct dma_engine_enter`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Enter {
    /// Bytes of this struct.
    pub size: u32,
    /// Bits of [`enter_flags`].
    pub flags: u32,
    /// Most entries to take.
    pub to_submit: u32,
    /// Completions to wait for.
    pub min_complete: u32,
    /// Longest wait in nanoseconds.
    pub timeout_ns: u64,
    /// Output: entries taken.
    pub submitted: u32,
    /// Output: completions in the queue.
    pub completed: u32,
}

/// `struct dma_engine_submit`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Submit {
    /// Bytes of this struct.
    pub size: u32,
    /// Must be 0.
    pub flags: u32,
    /// What to do.
    pub desc: Descriptor,
    /// Output: bytes moved.
    pub result: u32,
    /// Output: bits of [`super::completion::flags`].
    pub completion_flags: u32,
}

/// `struct dma_engine_register_memory`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterMemory {
    /// Bytes of this struct.
    pub size: u32,
    /// Must be 0.
    pub flags: u32,
    /// First byte in the caller's address space.
    pub address: u64,
    /// Bytes.
    pub length: u64,
    /// Bits of [`access`].
    pub access: u32,
    /// Output: region id.
    pub region: u32,
    /// Output: bits of [`properties`].
    pub properties: u32,
    /// Must be 0.
    pub reserved: u32,
}

/// `struct dma_engine_register_dmabuf`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterDmabuf {
    /// Bytes of this struct.
    pub size: u32,
    /// Must be 0.
    pub flags: u32,
    /// File of the dma-buf.
    pub fd: i32,
    /// Bits of [`access`].
    pub access: u32,
    /// First byte of the dma-buf that the region has.
    pub offset: u64,
    /// Bytes; 0 for all from `offset`.
    pub length: u64,
    /// Output: region id.
    pub region: u32,
    /// Output: bits of [`properties`].
    pub properties: u32,
}

/// `struct dma_engine_export`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// Bytes of this struct.
    pub size: u32,
    /// Must be 0.
    pub flags: u32,
    /// Region of this file.
    pub region: u32,
    /// Bits of [`access`] to give.
    pub access: u32,
    /// First byte that the other side sees.
    pub offset: u64,
    /// Bytes; 0 for all from `offset`.
    pub length: u64,
    /// Output: file that stands for the right.
    pub fd: i32,
    /// Must be 0.
    pub reserved: u32,
}

/// `struct dma_engine_import`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Import {
    /// Bytes of this struct.
    pub size: u32,
    /// Must be 0.
    pub flags: u32,
    /// File of an export.
    pub fd: i32,
    /// Bits of [`access`] to take.
    pub access: u32,
    /// Output: bytes of the range.
    pub length: u64,
    /// Output: region id.
    pub region: u32,
    /// Output: bits of [`properties`].
    pub properties: u32,
}

/// `struct dma_engine_unregister`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unregister {
    /// Bytes of this struct.
    pub size: u32,
    /// Must be 0.
    pub flags: u32,
    /// Region id.
    pub region: u32,
    /// Must be 0.
    pub reserved: u32,
}

/// `struct dma_engine_attach_eventfd`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttachEventfd {
    /// Bytes of this struct.
    pub size: u32,
    /// Bits of [`eventfd_flags`].
    pub flags: u32,
    /// An eventfd, or -1.
    pub fd: i32,
    /// Must be 0.
    pub reserved: u32,
}

/// `struct dma_engine_attach_proxy`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttachProxy {
    /// Bytes of this struct.
    pub size: u32,
    /// Must be 0.
    pub flags: u32,
    /// Number of this node from now on.
    pub node: u16,
    /// Must be 0.
    pub reserved: u16,
    /// Most requests handed out and not answered.
    pub max_requests: u32,
}

const _: () = assert!(core::mem::size_of::<Query>() == 88);
const _: () = assert!(core::mem::size_of::<RingSetup>() == 88);
const _: () = assert!(core::mem::size_of::<Enter>() == 32);
const _: () = assert!(core::mem::size_of::<Submit>() == 48);
const _: () = assert!(core::mem::size_of::<RegisterMemory>() == 40);
const _: () = assert!(core::mem::size_of::<RegisterDmabuf>() == 40);
const _: () = assert!(core::mem::size_of::<Export>() == 40);
const _: () = assert!(core::mem::size_of::<Import>() == 32);
const _: () = assert!(core::mem::size_of::<Unregister>() == 16);
const _: () = assert!(core::mem::size_of::<AttachEventfd>() == 16);
const _: () = assert!(core::mem::size_of::<AttachProxy>() == 16);
