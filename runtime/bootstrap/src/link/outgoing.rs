//! Calls to lower ranks: by Unix socket within a node, over the network otherwise.
//!
//! A rank of another node has several addresses, of which some may lead nowhere: they are called
//! in turn, each with a deadline of its own, until one of them answers and proves the secret.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::connection::{Connection, Ended};
use super::dial::{fresh_nonce, ignore_store, link, lost, refused};
use super::handshake::{Connector, Session, Step};
use super::listener::{Dialed, dial};
use super::peer::{Caller, Peer, user_conflict};
use super::stream::Stream;
use super::tcp;
use crate::backoff::Backoff;
use crate::rendezvous::Rendezvous;
use crate::{BootstrapError, Link};

/// How long one address may take to be connected and to answer.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(5);
/// Nobody listens at any address for so long: the rank has ended.
const REFUSED_TIMEOUT: Duration = Duration::from_secs(2);

enum Call {
    Waiting { again: Instant },
    Connecting { stream: TcpStream, until: Instant },
    Open { connection: Connection, connector: Connector, until: Option<Instant> },
}

/// Addresses of a rank of another node.
struct Addresses {
    all: Vec<SocketAddr>,
    next: usize,
    /// What came of each, as far as known.
    found: Vec<String>,
    /// Since when every answer was that nobody listens.
    refused_since: Option<Instant>,
}

/// A call to one lower rank.
pub(super) struct Outgoing {
    pub(super) peer: u32,
    call: Call,
    backoff: Backoff,
    /// None within the node.
    addresses: Option<Addresses>,
}

impl Outgoing {
    /// A call that is to be made at once, to these addresses or within the node.
    pub(super) fn new(peer: u32, addresses: Option<Vec<SocketAddr>>, now: Instant) -> Self {
        Self {
            peer,
            call: Call::Waiting { again: now },
            backoff: Backoff::new(Duration::from_millis(1), Duration::from_millis(100)),
            addresses: addresses.map(|all| Addresses {
                found: vec!["not called".to_owned(); all.len()],
                all,
                next: 0,
                refused_since: None,
            }),
        }
    }

    /// Make the call, if its time has come.
    pub(super) fn connect(&mut self, session: &Session) -> Result<(), BootstrapError> {
        let now = Instant::now();
        let Call::Waiting { again } = self.call else { return Ok(()) };
        if again > now {
            return Ok(());
        }
        if let Some(addresses) = &self.addresses {
            let Some(address) = addresses.all.get(addresses.next) else {
                return Err(self.unreachable(session));
            };
            match tcp::begin(*address) {
                Ok(stream) => {
                    self.call = Call::Connecting { stream, until: now + ADDRESS_TIMEOUT };
                }
                Err(error) => self.failed(error.desc(), error == Errno::ECONNREFUSED),
            }
            return Ok(());
        }
        let info = |rank: u32| &session.infos[rank as usize].info;
        self.call = match dial(&info(self.peer).socket)? {
            Dialed::Gone => return Err(lost(session, self.peer)),
            Dialed::Busy => Call::Waiting { again: now + self.backoff.step() },
            Dialed::Connected(stream) => {
                let found = Peer::of(&stream)?;
                if let Some(conflict) = user_conflict(info(session.rank).uid, found.uid) {
                    return Err(refused(session, self.peer, &conflict));
                }
                self.open(session, Stream::Unix(stream), None)?
            }
        };
        Ok(())
    }

    /// Speak first.
    fn open(
        &mut self,
        session: &Session,
        stream: Stream,
        until: Option<Instant>,
    ) -> Result<Call, BootstrapError> {
        let (connector, hello) = Connector::start(session, self.peer, fresh_nonce()?);
        let mut connection = Connection::new(stream);
        Ok(match connection.send(&hello) {
            Ok(()) => Call::Open { connection, connector, until },
            Err(_) => Call::Waiting { again: Instant::now() + self.backoff.step() },
        })
    }

    /// Go on as far as possible without waiting; the link, once it is made.
    pub(super) fn serve(
        &mut self,
        session: &Session,
        rendezvous: &Rendezvous<'_>,
    ) -> Result<Option<Link>, BootstrapError> {
        self.connected(session)?;
        self.check_gone(session)?;
        let Call::Open { connection, connector, until } = &mut self.call else { return Ok(None) };
        let peer = self.peer;
        let ended = loop {
            if let Err(ended) = connection.flush() {
                break ended;
            }
            let frame = match connection.receive() {
                Ok(Some(frame)) => frame,
                Ok(None) if until.is_some_and(|until| Instant::now() >= until) => {
                    self.failed("connected, but no answer", false);
                    return Ok(None);
                }
                Ok(None) => return Ok(None),
                Err(ended) => break ended,
            };
            match connector.on(session, frame) {
                Step::Send(frame) => {
                    if let Err(ended) = connection.send(&frame) {
                        break ended;
                    }
                }
                Step::Linked(rank, _) => {
                    let again = Call::Waiting { again: Instant::now() };
                    let Call::Open { connection, .. } = std::mem::replace(&mut self.call, again)
                    else {
                        return Ok(None);
                    };
                    let stream = connection.into_stream();
                    let found = match &stream {
                        Stream::Unix(stream) => Some(Peer::of(stream)?),
                        Stream::Tcp(_) => None,
                    };
                    return Ok(Some(link(session, rank, found.map(Caller::Local), stream)));
                }
                Step::Fail { reason, send } => {
                    drop(connection.send(&send));
                    return Err(refused(session, peer, &reason));
                }
                Step::Refused(reason) => {
                    return Err(refused(session, peer, &format!("rank {peer} says: {reason}")));
                }
            }
        };
        match ended {
            // Over the network, something else may listen there: the next address may be right.
            ended if self.addresses.is_some() => {
                rendezvous.check_refused().or_else(ignore_store)?;
                self.failed(&ended.to_string(), false);
                Ok(None)
            }
            // Dropped for want of time or room, or the rank ended: the next call tells.
            Ended::Closed => {
                rendezvous.check_refused().or_else(ignore_store)?;
                self.call = Call::Waiting { again: Instant::now() + self.backoff.step() };
                Ok(None)
            }
            Ended::Frame(error) => Err(BootstrapError::Protocol {
                name: session.name.clone(),
                rank: session.rank,
                peer,
                detail: format!("in the handshake: {error}"),
            }),
            Ended::System(error) => Err(BootstrapError::system("handshake with a rank", error)),
        }
    }

    /// See whether a connect has ended.
    fn connected(&mut self, session: &Session) -> Result<(), BootstrapError> {
        let Call::Connecting { stream, until } = &self.call else { return Ok(()) };
        let until = *until;
        let mut fds = [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)];
        let ended = poll(&mut fds, PollTimeout::ZERO).is_ok_and(|count| count > 0);
        if !ended {
            if Instant::now() >= until {
                self.failed("no answer", false);
            }
            return Ok(());
        }
        if let Err(error) = tcp::outcome(stream) {
            self.failed(error.desc(), error == Errno::ECONNREFUSED);
            return Ok(());
        }
        let again = Call::Waiting { again: Instant::now() };
        if let Call::Connecting { stream, .. } = std::mem::replace(&mut self.call, again) {
            self.call = self.open(session, Stream::Tcp(stream), Some(until))?;
        }
        Ok(())
    }

    /// The present address does not lead to the rank: on to the next, after a pause at the end of
    /// the list.
    fn failed(&mut self, what: &str, nobody_listens: bool) {
        let now = Instant::now();
        let mut again = now;
        if let Some(addresses) = &mut self.addresses {
            if let Some(found) = addresses.found.get_mut(addresses.next) {
                what.clone_into(found);
            }
            if nobody_listens {
                addresses.refused_since.get_or_insert(now);
            } else {
                addresses.refused_since = None;
            }
            addresses.next += 1;
            if addresses.next >= addresses.all.len() {
                addresses.next = 0;
                again += self.backoff.step();
            }
        }
        self.call = Call::Waiting { again };
    }

    /// A rank that nobody listens for any more has ended.
    fn check_gone(&self, session: &Session) -> Result<(), BootstrapError> {
        match self.addresses.as_ref().and_then(|a| a.refused_since) {
            Some(since) if since.elapsed() >= REFUSED_TIMEOUT => Err(self.unreachable(session)),
            _ => Ok(()),
        }
    }

    /// The error of a rank of another node that cannot be reached; of another where this node's.
    pub(super) fn unreachable(&self, session: &Session) -> BootstrapError {
        let Some(addresses) = &self.addresses else { return lost(session, self.peer) };
        let tried: Vec<_> =
            addresses.all.iter().zip(&addresses.found).map(|(a, f)| format!("{a}: {f}")).collect();
        BootstrapError::Unreachable {
            name: session.name.clone(),
            rank: session.rank,
            peer: self.peer,
            node: session.infos[self.peer as usize].info.node.clone(),
            tried: if tried.is_empty() {
                "it published no address that this node could use".to_owned()
            } else {
                tried.join("; ")
            },
        }
    }

    /// Whether it goes over the network.
    pub(super) const fn is_remote(&self) -> bool {
        self.addresses.is_some()
    }

    /// What to watch, and the latest time to look again.
    pub(super) fn watch(&self, until: &mut Instant) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match &self.call {
            Call::Waiting { again } => {
                *until = (*until).min(*again);
                None
            }
            Call::Connecting { stream, until: end } => {
                *until = (*until).min(*end);
                Some((stream.as_fd(), PollFlags::POLLOUT))
            }
            Call::Open { connection, until: end, .. } => {
                if let Some(end) = end {
                    *until = (*until).min(*end);
                }
                Some((connection.as_fd(), connection.events()))
            }
        }
    }
}
