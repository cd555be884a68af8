//! What a communicator can be asked to do.

use crate::{Call, Error, UnevenCall};

/// Longest message in bytes: what one region can address.
const MAX_BYTES: u64 = 1 << 40;

/// One request, with its memory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Request {
    /// A collective; every rank must ask for the same.
    Collective(Call),
    /// Send the memory of the message to its peer.
    Send(Message),
    /// Receive the memory of the message from its peer.
    Recv(Message),
    /// Receive from whichever rank sends first; [`Work::source`](crate::Work::source) tells which.
    RecvAny(AnyMessage),
    /// A collective whose blocks differ in length.
    Uneven(UnevenCall),
}

impl Request {
    /// The collective, where it is an even one.
    pub(crate) const fn as_call(&self) -> Option<&Call> {
        match self {
            Self::Collective(call) => Some(call),
            _ => None,
        }
    }

    /// Whether it is a message to or from a rank that is named.
    pub(crate) const fn is_message(&self) -> bool {
        matches!(self, Self::Send(_) | Self::Recv(_))
    }

    /// Whether it may be made of several operations, and so goes the way of groups.
    pub(crate) const fn is_several(&self) -> bool {
        matches!(self, Self::RecvAny(_) | Self::Uneven(_))
    }
}

impl From<UnevenCall> for Request {
    fn from(call: UnevenCall) -> Self {
        Self::Uneven(call)
    }
}

impl From<Call> for Request {
    fn from(call: Call) -> Self {
        Self::Collective(call)
    }
}

/// Bytes that go from one rank to another.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// The other rank.
    pub peer: u32,
    /// Number that sender and receiver must give alike.
    pub tag: i32,
    /// First byte; a send only reads it.
    pub memory: *mut u8,
    /// Length; sender and receiver must give it alike.
    pub bytes: usize,
}

// SAFETY:
// - The pointer is a number here; only an engine reads through it, under the contract of
//   `Engine::register`, which does not depend on the thread.
unsafe impl Send for Message {}
// SAFETY:
// - As for `Send`: sharing it shares a number.
unsafe impl Sync for Message {}

/// Bytes that come from whichever rank sends first.
#[derive(Clone, Copy, Debug)]
pub struct AnyMessage {
    /// Number that sender and receiver must give alike.
    pub tag: i32,
    /// First byte.
    pub memory: *mut u8,
    /// Length; sender and receiver must give it alike.
    pub bytes: usize,
}

// SAFETY:
// - As for `Message`.
unsafe impl Send for AnyMessage {}
// SAFETY:
// - As for `Message`.
unsafe impl Sync for AnyMessage {}

impl AnyMessage {
    /// Refuse a message that cannot be right among `ranks`.
    pub(crate) fn check(&self, ranks: u32) -> Result<(), Error> {
        if ranks < 2 {
            return Err(Error::invalid(
                "peer",
                "any",
                "there must be another rank to receive from",
            ));
        }
        check_memory(self.memory, self.bytes)
    }
}

fn check_memory(memory: *mut u8, bytes: usize) -> Result<(), Error> {
    if memory.is_null() && bytes > 0 {
        return Err(Error::invalid("buffer", "null", "must point to memory"));
    }
    if bytes as u64 > MAX_BYTES {
        return Err(Error::invalid("bytes", bytes, "must be at most 2^40"));
    }
    Ok(())
}

impl Message {
    /// Refuse a message that cannot be right on `rank` of `ranks`.
    pub(crate) fn check(&self, rank: u32, ranks: u32) -> Result<(), Error> {
        let Self { peer, memory, bytes, .. } = *self;
        if peer >= ranks || peer == rank {
            let rule = format!(
                "must be another rank than {rank} and less than {ranks}, the number of ranks"
            );
            return Err(Error::invalid("peer", peer, rule));
        }
        check_memory(memory, bytes)
    }
}
