//! What the proxy of a node reads and writes.

use super::descriptor::Descriptor;

/// `struct dma_engine_proxy_request`: a descriptor for another node.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyRequest {
    /// Number for the reply.
    pub id: u64,
    /// What to do; the end on this node names a region lent to the proxy.
    pub desc: Descriptor,
    /// When the request fails, in nanoseconds of `CLOCK_MONOTONIC`.
    pub deadline_ns: u64,
    /// User that submitted it.
    pub uid: u32,
    /// 0.
    pub reserved: [u32; 3],
}

/// `struct dma_engine_proxy_reply`: the end of a request.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyReply {
    /// That of the request.
    pub id: u64,
    /// As in [`super::CompletionEntry`].
    pub result: u32,
    /// 0 or [`super::completion::flags::ERROR`].
    pub flags: u32,
}

const _: () = assert!(core::mem::size_of::<ProxyRequest>() == 64);
const _: () = assert!(core::mem::size_of::<ProxyReply>() == 16);
