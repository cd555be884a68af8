//! The ranks of a communicator, found and authenticated.

use std::net::Shutdown;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

use crate::BootstrapError;
use crate::link::{Outgoing, Stream, exchange};

/// Longest message of [`Mesh::exchange`] in bytes.
pub const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// An authenticated connection to a rank.
#[derive(Debug)]
pub struct Link {
    /// Who is at the other end.
    pub rank: u32,
    /// Its process, as this process sees it; this process where ranks are threads.
    pub pid: u32,
    /// The connection. Kept open it tells when the peer ends: it then reads as
    /// closed. Nothing but [`Mesh`] may read or write it before the last exchange.
    pub stream: Stream,
}

/// The ranks of a communicator, found and authenticated.
#[derive(Debug)]
pub struct Mesh {
    /// This rank.
    pub rank: u32,
    /// How many ranks there are.
    pub ranks: u32,
    /// Node of each rank: hosts numbered from 0 in the order in which their first rank comes.
    pub nodes: Vec<u32>,
    /// What each rank gave as its note, this rank included.
    pub notes: Vec<Vec<u8>>,
    /// The link to each rank; none to this rank.
    pub links: Vec<Option<Link>>,
    /// Strangers that were turned away, for the log; at most 32.
    pub warnings: Vec<String>,
    name: String,
    exchanges: u32,
    broken: Option<String>,
}

impl Mesh {
    pub(crate) fn new(
        name: String,
        rank: u32,
        nodes: Vec<u32>,
        notes: Vec<Vec<u8>>,
        links: Vec<Option<Link>>,
        warnings: Vec<String>,
    ) -> Self {
        let ranks = nodes.len() as u32;
        Self { rank, ranks, nodes, notes, links, warnings, name, exchanges: 0, broken: None }
    }

    /// Name of the communicator.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Send `bytes` to every linked rank and receive what each sends. All linked ranks call it;
    /// ranks without a link get and give `None`.
    ///
    /// # Errors
    ///
    /// [`BootstrapError::Argument`] above [`MAX_MESSAGE_BYTES`]; [`BootstrapError::PeerLost`],
    /// [`BootstrapError::Timeout`], [`BootstrapError::Protocol`] where the peer called something
    /// else. Any of these closes all links, so that the other ranks end too, and later exchanges
    /// give [`BootstrapError::Broken`].
    pub fn exchange(
        &mut self,
        bytes: &[u8],
        deadline: Instant,
    ) -> Result<Vec<Option<Vec<u8>>>, BootstrapError> {
        if bytes.len() > MAX_MESSAGE_BYTES {
            return Err(BootstrapError::Argument {
                what: format!(
                    "a message of {} bytes: at most {MAX_MESSAGE_BYTES} can be exchanged",
                    bytes.len(),
                ),
            });
        }
        let received = self.run(Outgoing::Bytes(bytes), deadline)?;
        Ok(received.into_iter().map(|r| r.map(|r| r.bytes)).collect())
    }

    /// Send a copy of `fd` to every rank that is linked by a Unix socket and receive one descriptor
    /// of each, close-on-exec; others get and give `None`. All ranks call it.
    ///
    /// # Errors
    ///
    /// As [`Mesh::exchange`].
    pub fn exchange_fd(
        &mut self,
        fd: BorrowedFd<'_>,
        deadline: Instant,
    ) -> Result<Vec<Option<OwnedFd>>, BootstrapError> {
        let received = self.run(Outgoing::Descriptor(fd), deadline)?;
        Ok(received.into_iter().map(|r| r.and_then(|r| r.descriptor)).collect())
    }

    fn run(
        &mut self,
        outgoing: Outgoing<'_>,
        deadline: Instant,
    ) -> Result<Vec<Option<crate::link::Received>>, BootstrapError> {
        if let Some(reason) = &self.broken {
            return Err(BootstrapError::Broken {
                name: self.name.clone(),
                rank: self.rank,
                reason: reason.clone(),
            });
        }
        let sequence = self.exchanges;
        self.exchanges = self.exchanges.wrapping_add(1);
        exchange(&self.name, self.rank, &self.links, outgoing, sequence, deadline).inspect_err(
            |error| {
                self.broken = Some(error.to_string());
                // The others need not wait for their deadlines; a link that is closed already
                // needs no second end.
                for link in self.links.iter().flatten() {
                    drop(link.stream.shutdown(Shutdown::Both));
                }
            },
        )
    }
}
