//! The two kinds of connection between ranks.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// A connection to another rank.
#[derive(Debug)]
pub enum Stream {
    /// Within a node; descriptors can be passed over it.
    Unix(UnixStream),
    /// Over the network.
    Tcp(TcpStream),
}

impl Stream {
    /// Another handle on the same connection.
    ///
    /// # Errors
    ///
    /// The process has no descriptor left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Unix(stream) => Self::Unix(stream.try_clone()?),
            Self::Tcp(stream) => Self::Tcp(stream.try_clone()?),
        })
    }

    /// End the connection for all handles on it.
    ///
    /// # Errors
    ///
    /// It has ended already.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.shutdown(how),
            Self::Tcp(stream) => stream.shutdown(how),
        }
    }

    /// Whether it goes over the network.
    #[must_use]
    pub const fn is_tcp(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}
