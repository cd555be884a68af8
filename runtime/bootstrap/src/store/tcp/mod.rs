//! A small store over TCP: one rank serves, all are clients.
//!
//! With a secret, client and server prove it to one another before any command. What follows is
//! neither encrypted nor signed: use it on a network that you trust, and give the job's secret to
//! all ranks by file or environment rather than letting rank 0 put one into the store.

mod client;
mod frame;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod message;
mod server;
mod table;

pub use client::TcpStore;
pub use server::{TcpStoreLimits, TcpStoreServer};
