//! Makes the links: connects to lower ranks, accepts higher ones, all at once.
//!
//! One loop over `poll`, so that a stranger who connects and stalls holds up nobody.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::connection::Connection;
use super::handshake::{Acceptor, Session, Step};
use super::listener::{Listener, listens};
use super::outgoing::Outgoing;
use super::peer::{Caller, Peer, user_conflict};
use super::stream::Stream;
use super::tcp::TcpListeners;
use crate::auth::Nonce;
use crate::network::reachable;
use crate::rendezvous::Rendezvous;
use crate::wire::printable;
use crate::{BootstrapError, Link};

/// How long an accepted connection may take to prove who it is.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Most connections at once that have not proven who they are, beyond one a rank.
const MAX_STRANGERS: usize = 64;

/// Most warnings kept.
const MAX_WARNINGS: usize = 32;

/// How often the store and the peers are looked at while nothing comes.
const LOOK_AROUND: Duration = Duration::from_millis(20);

/// Most connections accepted in one turn, so that a flood leaves time for the others.
const MAX_ACCEPTS: usize = 32;

/// A connection that somebody made to this rank.
struct Incoming {
    connection: Connection,
    acceptor: Acceptor,
    caller: Caller,
    deadline: Instant,
    /// Set once proven; waits for its welcome to be sent.
    linked: Option<u32>,
}

struct Dialer<'a> {
    session: &'a Session,
    listener: &'a Listener,
    tcp: Option<&'a TcpListeners>,
    links: Vec<Option<Link>>,
    outgoing: Vec<Outgoing>,
    incoming: Vec<Incoming>,
    /// Higher ranks that have not connected.
    awaited: Vec<u32>,
    /// By rank: it is linked by Unix socket.
    local: Vec<bool>,
    warnings: Vec<String>,
}

/// The network between ranks, where they need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remote<'a> {
    /// Where this rank listens.
    pub(crate) listeners: &'a TcpListeners,
    /// Where each rank listens.
    pub(crate) addresses: &'a [Vec<SocketAddr>],
    /// Ranks of one node use it too.
    pub(crate) everywhere: bool,
}

/// One link to every rank of `session`, and what went wrong with strangers: by Unix socket within
/// the node, over the network to others, where there is one.
///
/// # Errors
///
/// A rank ended, refused, cannot be reached or did not come before `deadline`; somebody refused
/// the communicator.
pub(crate) fn link_all(
    session: &Session,
    (listener, remote): (&Listener, Option<Remote<'_>>),
    nodes: &[u32],
    rendezvous: &Rendezvous<'_>,
    deadline: Instant,
) -> Result<(Vec<Option<Link>>, Vec<String>), BootstrapError> {
    let now = Instant::now();
    let here = |rank: u32| nodes.get(rank as usize) == nodes.get(session.rank as usize);
    let everywhere = remote.is_some_and(|remote| remote.everywhere);
    let ranks = session.infos.len() as u32;
    let outgoing = (0..session.rank).map(|peer| {
        let remote = remote.filter(|_| everywhere || !here(peer));
        let addresses = remote.map(|remote| {
            let published = remote.addresses.get(peer as usize).map_or(&[][..], Vec::as_slice);
            published.iter().copied().filter(|a| reachable(a.ip(), here(peer))).collect()
        });
        Outgoing::new(peer, addresses, now)
    });
    let mut dialer = Dialer {
        session,
        listener,
        tcp: remote.map(|remote| remote.listeners),
        links: (0..ranks).map(|_| None).collect(),
        outgoing: outgoing.collect(),
        incoming: Vec::new(),
        awaited: (session.rank + 1..ranks).collect(),
        local: (0..ranks).map(|rank| here(rank) && !everywhere).collect(),
        warnings: Vec::new(),
    };
    let mut look = now + LOOK_AROUND;
    loop {
        dialer.connect_due()?;
        dialer.serve(rendezvous)?;
        if dialer.outgoing.is_empty() && dialer.awaited.is_empty() {
            return Ok((dialer.links, dialer.warnings));
        }
        let now = Instant::now();
        if now >= deadline {
            if let Some(call) = dialer.outgoing.iter().find(|call| call.is_remote()) {
                return Err(call.unreachable(session));
            }
            return Err(rendezvous.timeout("linking the ranks", dialer.missing()));
        }
        if now >= look {
            dialer.look_around(rendezvous)?;
            look = now + LOOK_AROUND;
        }
        dialer.sleep(look.min(deadline))?;
    }
}

impl Dialer<'_> {
    /// Make the calls whose time has come.
    fn connect_due(&mut self) -> Result<(), BootstrapError> {
        self.outgoing.iter_mut().try_for_each(|outgoing| outgoing.connect(self.session))
    }

    /// Do everything that can be done without waiting.
    fn serve(&mut self, rendezvous: &Rendezvous<'_>) -> Result<(), BootstrapError> {
        self.accept()?;
        let mut at = 0;
        while at < self.outgoing.len() {
            if let Some(link) = self.outgoing[at].serve(self.session, rendezvous)? {
                let peer = link.rank as usize;
                self.links[peer] = Some(link);
                self.outgoing.swap_remove(at);
            } else {
                at += 1;
            }
        }
        // In order, so that the first stays the oldest.
        for incoming in std::mem::take(&mut self.incoming) {
            if let Some(kept) = self.serve_incoming(incoming)? {
                self.incoming.push(kept);
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> Result<(), BootstrapError> {
        for _ in 0..MAX_ACCEPTS {
            let Some((stream, caller)) = self.accept_one()? else { return Ok(()) };
            let own = self.session.infos[self.session.rank as usize].info.uid;
            if let Caller::Local(peer) = caller
                && let Some(conflict) = user_conflict(own, peer.uid)
            {
                self.warn(caller, &conflict);
                continue;
            }
            // The oldest has had the most time. A rank that is dropped here calls again.
            if self.incoming.len() >= MAX_STRANGERS + self.awaited.len() {
                let oldest = self.incoming.remove(0);
                self.warn(oldest.caller, "too many connections that do not prove who they are");
            }
            self.incoming.push(Incoming {
                connection: Connection::new(stream),
                acceptor: Acceptor::new(fresh_nonce()?),
                caller,
                deadline: Instant::now() + ACCEPT_TIMEOUT,
                linked: None,
            });
        }
        Ok(())
    }

    /// The next connection of this node or of the network.
    fn accept_one(&self) -> Result<Option<(Stream, Caller)>, BootstrapError> {
        if let Some(stream) = self.listener.accept()? {
            let peer = Peer::of(&stream)?;
            return Ok(Some((Stream::Unix(stream), Caller::Local(peer))));
        }
        let Some(tcp) = self.tcp else { return Ok(None) };
        Ok(tcp.accept()?.map(|(stream, from)| (Stream::Tcp(stream), Caller::Remote(from))))
    }

    /// The connection, where it is not done with.
    fn serve_incoming(
        &mut self,
        mut incoming: Incoming,
    ) -> Result<Option<Incoming>, BootstrapError> {
        let ended = loop {
            if let Err(ended) = incoming.connection.flush() {
                break ended.to_string();
            }
            if let Some(rank) = incoming.linked {
                if incoming.connection.unsent() {
                    return Ok(Some(incoming));
                }
                self.awaited.retain(|&awaited| awaited != rank);
                let stream = incoming.connection.into_stream();
                let link = link(self.session, rank, Some(incoming.caller), stream);
                self.links[rank as usize] = Some(link);
                return Ok(None);
            }
            let frame = match incoming.connection.receive() {
                Ok(Some(frame)) => frame,
                Ok(None) if Instant::now() < incoming.deadline => return Ok(Some(incoming)),
                Ok(None) => break format!("it did not prove who it is in {ACCEPT_TIMEOUT:?}"),
                Err(ended) => break ended.to_string(),
            };
            match incoming.acceptor.on(self.session, frame) {
                Step::Send(frame) => {
                    if let Err(ended) = incoming.connection.send(&frame) {
                        break ended.to_string();
                    }
                }
                Step::Linked(rank, _) if !self.awaited.contains(&rank) => {
                    break format!("rank {rank} is linked already");
                }
                Step::Linked(rank, _) if self.local[rank as usize] == incoming.is_remote() => {
                    break format!("rank {rank} is of another node, or of this one");
                }
                Step::Linked(rank, welcome) => {
                    incoming.linked = Some(rank);
                    if let Some(Err(ended)) = welcome.map(|w| incoming.connection.send(&w)) {
                        break ended.to_string();
                    }
                }
                Step::Fail { reason, send } => {
                    // The stranger may not be listening; it is dropped in any case.
                    drop(incoming.connection.send(&send));
                    break reason;
                }
                Step::Refused(reason) => break format!("it refused: {reason}"),
            }
        };
        let (caller, claimed) = (incoming.caller, incoming.acceptor.claimed());
        if let Some(rank) = incoming.linked {
            // Proven, so this is no stranger but the rank itself that ended.
            return Err(lost(self.session, rank));
        }
        let who = claimed.map_or_else(String::new, |rank| format!("claiming to be rank {rank}: "));
        self.warn(caller, &format!("{who}{ended}"));
        Ok(None)
    }

    /// Notice refusals and ranks that ended before they connected.
    fn look_around(&self, rendezvous: &Rendezvous<'_>) -> Result<(), BootstrapError> {
        match rendezvous.check_refused() {
            // The rank that serves the store may be done and gone already; what matters now
            // is the sockets.
            Ok(()) | Err(BootstrapError::Store { .. }) => {}
            Err(error) => return Err(error),
        }
        for &rank in &self.awaited {
            if self.incoming.iter().any(|i| i.acceptor.claimed() == Some(rank)) {
                continue;
            }
            if self.local[rank as usize]
                && !listens(&self.session.infos[rank as usize].info.socket)?
            {
                rendezvous.check_refused()?;
                return Err(lost(self.session, rank));
            }
        }
        Ok(())
    }

    fn missing(&self) -> Vec<u32> {
        let mut missing: Vec<u32> = self.outgoing.iter().map(|o| o.peer).collect();
        missing.extend(&self.awaited);
        missing.sort_unstable();
        missing
    }

    /// Wait until a socket is ready, a call is due or `until`.
    fn sleep(&self, mut until: Instant) -> Result<(), BootstrapError> {
        let mut fds = vec![PollFd::new(self.listener.socket().as_fd(), PollFlags::POLLIN)];
        for listener in self.tcp.map_or(&[][..], TcpListeners::sockets) {
            fds.push(PollFd::new(listener.as_fd(), PollFlags::POLLIN));
        }
        for outgoing in &self.outgoing {
            fds.extend(outgoing.watch(&mut until).map(|(fd, events)| PollFd::new(fd, events)));
        }
        for incoming in &self.incoming {
            until = until.min(incoming.deadline);
            let connection = &incoming.connection;
            fds.push(PollFd::new(connection.as_fd(), connection.events()));
        }
        let left = until.saturating_duration_since(Instant::now());
        match poll(&mut fds, timeout(left)) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(BootstrapError::system("poll", error)),
        }
    }

    fn warn(&mut self, caller: Caller, what: &str) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(format!(
                "dropped a connection of {caller}: {}",
                printable(what.as_bytes(), 256),
            ));
        }
    }
}

impl Incoming {
    const fn is_remote(&self) -> bool {
        matches!(self.caller, Caller::Remote(_))
    }
}

pub(super) fn ignore_store(error: BootstrapError) -> Result<(), BootstrapError> {
    if matches!(error, BootstrapError::Store { .. }) { Ok(()) } else { Err(error) }
}

pub(super) fn link(session: &Session, rank: u32, found: Option<Caller>, stream: Stream) -> Link {
    let published = session.infos[rank as usize].info.pid;
    let pid = match found {
        Some(Caller::Local(peer)) if peer.pid != 0 => peer.pid,
        _ => published,
    };
    Link { rank, pid, stream }
}

pub(super) fn lost(session: &Session, peer: u32) -> BootstrapError {
    BootstrapError::PeerLost {
        name: session.name.clone(),
        rank: session.rank,
        peer,
        pid: session.infos[peer as usize].info.pid,
        during: "the ranks were linking".to_owned(),
    }
}

pub(super) fn refused(session: &Session, peer: u32, reason: &str) -> BootstrapError {
    BootstrapError::Refused {
        name: session.name.clone(),
        rank: session.rank,
        reason: format!("link of rank {} to rank {peer}: {reason}", session.rank),
    }
}

pub(super) fn fresh_nonce() -> Result<Nonce, BootstrapError> {
    let mut nonce = Nonce::default();
    getrandom::fill(&mut nonce).map_err(|e| BootstrapError::system("getrandom", e))?;
    Ok(nonce)
}

/// Milliseconds for `poll`, rounded up so that it does not spin before a deadline.
pub(super) fn timeout(left: Duration) -> PollTimeout {
    let millis = left.as_nanos().div_ceil(1_000_000);
    PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
}
