//! Who is at the other end of a Unix socket, as the kernel says.

use std::fmt;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};

use crate::BootstrapError;

/// Process and user at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// 0 where it is in a process namespace that this one cannot see.
    pub(crate) pid: u32,
    pub(crate) uid: u32,
}

/// Whoever is at the other end of a connection, before anything is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Of this node, as the kernel says.
    Local(Peer),
    /// Of the network, as it says itself.
    Remote(SocketAddr),
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(peer) => write!(f, "pid {} (user {})", peer.pid, peer.uid),
            Self::Remote(address) => write!(f, "{address}"),
        }
    }
}

impl Peer {
    pub(crate) fn of(stream: &UnixStream) -> Result<Self, BootstrapError> {
        let found = getsockopt(stream, PeerCredentials)
            .map_err(|e| BootstrapError::system("getsockopt(SO_PEERCRED)", e))?;
        Ok(Self { pid: found.pid().unsigned_abs(), uid: found.uid() })
    }
}

/// Why a peer of user `peer` may not link with a rank of user `own`, if so. Root may link with
/// everybody: it can read any process anyway.
pub(crate) fn user_conflict(own: u32, peer: u32) -> Option<String> {
    (own != peer && own != 0 && peer != 0)
        .then(|| format!("it runs as user {peer}, this rank as user {own}; run all as one user"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_user_and_root_may_link() {
        assert_eq!(user_conflict(1000, 1000), None);
        assert_eq!(user_conflict(0, 1000), None);
        assert_eq!(user_conflict(1000, 0), None);
        assert!(user_conflict(1000, 1001).unwrap().contains("user 1001"));
    }

    #[test]
    fn the_kernel_names_this_process() {
        let (one, _two) = UnixStream::pair().unwrap();
        let peer = Peer::of(&one).unwrap();
        assert_eq!(peer.pid, std::process::id());
        assert_eq!(peer.uid, nix::unistd::geteuid().as_raw());
    }
}
