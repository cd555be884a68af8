//! Submission and completion rings over the ABI of `/dev/dma_device`.
//!
//! A ring has two sides. The [`Client`] submits entries and reads completions; the [`Service`]
//! takes entries and posts completions, as the driver does behind the device and as a worker
//! thread does in the process ([`Ring::in_process`]); [`Device::ring`] makes a client of the driver. Both are written over [`RingMemory`], so
//! that one code serves a mapping of the driver, memory of the process, and a model checker.
//!
//! Neither side trusts the other. Each keeps heads and tails of its own, takes those of the other
//! as claims about a distance, and copies an entry once before it looks at it. What the other side
//! can do is make calls fail with a [`RingError`], or hand over entries of wrong content.
//!
//! The order of all accesses is argued on one page: Documentation/memory-model.md.
#![deny(unsafe_code)]

mod client;
mod cqueue;
mod device;
mod error;
mod in_process;
mod layout;
mod mapped;
mod memory;
mod service;
mod squeue;

pub use client::{Client, Push};
pub use cqueue::CompletionQueue;
pub use device::{Device, DeviceEnd, DeviceError, Imported, Region};
pub use dma_engine_uapi::{CompletionEntry, Descriptor, SubmissionEntry};
pub use error::RingError;
pub use in_process::{End, Ring};
pub use layout::{MAX_ENTRIES, RingLayout};
pub use mapped::MappedRing;
pub use memory::{Doorbell, RingMemory, Side, Word};
pub use service::{Service, Taken};
pub use squeue::SubmissionQueue;

/// Why a wait for the other side returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// There is something to do.
    Ready,
    /// The limit is over, or the wait ended early for no reason.
    Idle,
    /// The other side is gone and will do nothing more.
    Gone,
}
