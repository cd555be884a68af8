//! One authenticated socket to each rank of the same host.

mod connection;
mod dial;
mod exchange;
mod frame;
mod handshake;
mod listener;
mod passing;
mod peer;

pub(crate) use dial::link_all;
pub(crate) use exchange::{Outgoing, Received, exchange};
pub(crate) use handshake::Session;
pub(crate) use listener::Listener;
