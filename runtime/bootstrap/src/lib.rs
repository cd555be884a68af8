//! How ranks find and authenticate one another: stores, handshake, descriptor passing.
//!
//! [`join`] takes a [`Store`] that all ranks of a communicator share and returns a [`Mesh`]: who
//! is where, what each rank published about itself, and one authenticated connection to every other
//! rank: a Unix socket within a node, TCP between nodes. Nothing else of the runtime opens one.
//!
//! # Who is trusted
//!
//! The store is trusted to deliver what was written: whoever may write it can stop the job. It is
//! not trusted to say who a rank is when the caller gives a [`Secret`]: every published value and
//! every socket then carries a proof of the secret. Without one, rank 0 makes a secret and leaves
//! it in the store, so whoever reads the store may join.
//!
//! What goes over TCP after the handshake is neither encrypted nor signed: run between nodes on a
//! network that you trust, or through a tunnel.
//!
//! # What stays in the store
//!
//! A communicator `NAME` uses the keys `stepccl/NAME/…`: `order`, `first`, `secret` (only without
//! a given secret), `claim/RANK`, `here/RANK`, `info/RANK`, `table`, between nodes `reach/RANK` and
//! `reaches`, and, after a failure, `refused`. None is removed, because a store need not offer removal and a late duplicate must
//! still be refused. A communicator that is made again on the same store therefore needs a new
//! name: the caller appends a generation, such as `world.0` and then `world.1`.
#![forbid(unsafe_op_in_unsafe_fn)]
#![deny(unsafe_code)]

mod auth;
mod backoff;
mod config;
mod error;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod host;
mod info;
mod join;
mod keys;
mod link;
mod mesh;
mod network;
mod reach;
mod rendezvous;
mod secret;
mod store;
mod wire;

pub use config::{JoinConfig, MAX_NAME_BYTES, MAX_NOTE_BYTES, MAX_RANKS};
pub use error::BootstrapError;
pub use join::join;
pub use link::Stream;
pub use mesh::{Link, MAX_MESSAGE_BYTES, Mesh};
pub use network::Network;
pub use secret::{Secret, SecretError};
pub use store::tcp::{TcpStore, TcpStoreLimits, TcpStoreServer};
pub use store::{
    FileStore, MAX_KEY_BYTES, MAX_VALUE_BYTES, MemoryStore, PrefixStore, Store, StoreError,
};
