//! One authenticated socket to each rank of the same host.

mod connection;
mod dial;
mod exchange;
mod frame;
mod handshake;
mod listener;
#[expect(unsafe_code, reason = "received descriptors become owned here and nowhere else")]
mod passing;
mod peer;

pub(crate) use dial::link_all;
pub(crate) use exchange::{Outgoing, Received, exchange};
pub(crate) use handshake::Session;
pub(crate) use listener::Listener;
