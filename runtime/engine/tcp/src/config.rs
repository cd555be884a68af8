//! What a TCP engine is made of.

use std::net::TcpStream;
use std::time::Duration;

use crate::TcpError;

/// Time after which a silent link counts as cut, unless configured otherwise.
pub const DEFAULT_LINK_TIMEOUT: Duration = Duration::from_secs(20);
/// Shortest time after which a link may count as cut: the kernel's own probes need a second each.
pub const MIN_LINK_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest such time.
pub const MAX_LINK_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Shape of a TCP engine. `flags` and `staging_bytes` are those of the host engine it is given,
/// the same for every rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// This rank.
    pub rank: u32,
    /// Ranks of the communicator, this one included.
    pub ranks: u32,
    /// Ranks that the host engine reaches, in the order in which it numbers them.
    pub local: Vec<u32>,
    /// After so long without an answer of the other side's kernel, the link counts as cut.
    pub link_timeout: Duration,
}

impl TcpConfig {
    /// Check all values that need no link.
    pub(crate) fn check(&self) -> Result<(), TcpError> {
        if !self.local.contains(&self.rank) || self.local.iter().any(|rank| *rank >= self.ranks) {
            return Err(TcpError::BadLocal { local: self.local.clone(), rank: self.rank });
        }
        if !(MIN_LINK_TIMEOUT..=MAX_LINK_TIMEOUT).contains(&self.link_timeout) {
            return Err(TcpError::LinkTimeout { given: self.link_timeout });
        }
        Ok(())
    }
}

/// A rank of another node, as start-up found it.
#[derive(Debug)]
pub struct TcpLink {
    /// Its rank.
    pub rank: u32,
    /// Its process id as that process sees it.
    pub pid: u32,
    /// Authenticated connection; nothing of the handshake is left in it.
    pub stream: TcpStream,
}
