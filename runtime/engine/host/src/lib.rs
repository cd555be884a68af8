//! The embedded engine: the calling thread, and worker threads, over shared memory.
//!
//! Every rank has one [`Segment`](stepccl_memory::Segment) with its flags and its staging, and
//! maps those of all others. A rank may be a process or a thread; both take the same path.
//! `Documentation/engines.md` has the layout of a segment and the contract behind [`HostEngine`].
#![forbid(unsafe_op_in_unsafe_fn)]

mod channel;
mod check;
mod config;
mod engine;
mod error;
mod giving_up;
mod header;
pub mod kernel;
mod lane;
mod lanes;
mod layout;
mod liveness;
mod post;
mod post_words;
mod pull;
mod region;
mod sleep;
mod waker;
mod words;
mod worker;

pub use config::{DEFAULT_CHANNEL_MIN_BYTES, HostConfig, MAX_CHANNELS, MAX_RANKS, PeerLink};
pub use engine::HostEngine;
pub use error::HostError;
pub use sleep::Asleep;

/// What `tests/loom.rs` runs over the memory of the model checker.
#[cfg(loom)]
pub mod models {
    pub use crate::giving_up::{announce, push, pushes, runs, was_readable};
    pub use crate::post_words::{PostWords, look, show};
    pub use crate::sleep::{fall_asleep, nap, nudge, sleep, wake_sleepers, wake_who_is_seen};
    pub use crate::words::LaneWords;
}
