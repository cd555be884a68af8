//! The engine between nodes: TCP to the ranks of other nodes, shared memory to those of this one.
//!
//! A [`TcpEngine`] has a [`HostEngine`](stepccl_engine_host::HostEngine) for the ranks of its node
//! and one connection to every other rank. A thread serves what the others ask of this rank's
//! staging, also while the application computes. `Documentation/engines.md` has the frames and
//! the rules.
#![forbid(unsafe_op_in_unsafe_fn)]

mod area;
mod config;
mod engine;
mod error;
mod farewell;
mod frame;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod inbox;
mod job;
mod outbox;
mod parser;
mod peer;
mod reactor;
mod scratch;
mod shared;
mod shelf;
mod socket;
mod submit;
mod transfers;

pub use config::{DEFAULT_LINK_TIMEOUT, MAX_LINK_TIMEOUT, MIN_LINK_TIMEOUT, TcpConfig, TcpLink};
pub use engine::TcpEngine;
pub use error::TcpError;
