//! One authenticated connection to each rank.

mod connection;
mod dial;
mod exchange;
mod frame;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod handshake;
mod listener;
mod outgoing;
#[expect(unsafe_code, reason = "received descriptors become owned here and nowhere else")]
mod passing;
mod peer;
mod stream;
mod tcp;

pub(crate) use dial::{Remote, link_all};
pub(crate) use exchange::{Outgoing, Received, exchange};
pub(crate) use handshake::Session;
pub(crate) use listener::Listener;
pub use stream::Stream;
pub(crate) use tcp::TcpListeners;
