//! Makes the links: connects to lower ranks, accepts higher ones, all at once.
//!
//! One loop over `poll`, so that a stranger who connects and stalls holds up nobody.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::connection::{Connection, Ended};
use super::handshake::{Acceptor, Connector, Session, Step};
use super::listener::{Dialed, Listener, dial, listens};
use super::peer::{Peer, user_conflict};
use crate::auth::Nonce;
use crate::backoff::Backoff;
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

enum Call {
    Waiting { again: Instant },
    Open { connection: Connection, connector: Connector },
}

/// A call to one lower rank.
struct Outgoing {
    peer: u32,
    call: Call,
    backoff: Backoff,
}

/// A connection that somebody made to this rank.
struct Incoming {
    connection: Connection,
    acceptor: Acceptor,
    peer: Peer,
    deadline: Instant,
    /// Set once proven; waits for its welcome to be sent.
    linked: Option<u32>,
}

struct Dialer<'a> {
    session: &'a Session,
    listener: &'a Listener,
    links: Vec<Option<Link>>,
    outgoing: Vec<Outgoing>,
    incoming: Vec<Incoming>,
    /// Higher ranks of this host that have not connected.
    awaited: Vec<u32>,
    warnings: Vec<String>,
}

/// One link to every rank of `session` that is on this host, and what went wrong with strangers.
///
/// # Errors
///
/// A rank ended, refused or did not come before `deadline`; somebody refused the communicator.
pub(crate) fn link_all(
    session: &Session,
    listener: &Listener,
    nodes: &[u32],
    rendezvous: &Rendezvous<'_>,
    deadline: Instant,
) -> Result<(Vec<Option<Link>>, Vec<String>), BootstrapError> {
    let now = Instant::now();
    let here = |rank: u32| nodes.get(rank as usize) == nodes.get(session.rank as usize);
    let ranks = session.infos.len() as u32;
    let outgoing = (0..session.rank).filter(|&rank| here(rank)).map(|peer| Outgoing {
        peer,
        call: Call::Waiting { again: now },
        backoff: Backoff::new(Duration::from_millis(1), Duration::from_millis(100)),
    });
    let mut dialer = Dialer {
        session,
        listener,
        links: (0..ranks).map(|_| None).collect(),
        outgoing: outgoing.collect(),
        incoming: Vec::new(),
        awaited: (session.rank + 1..ranks).filter(|&rank| here(rank)).collect(),
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
            return Err(rendezvous.timeout("linking the ranks of this host", dialer.missing()));
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
        let now = Instant::now();
        for outgoing in &mut self.outgoing {
            let Call::Waiting { again } = outgoing.call else { continue };
            if again > now {
                continue;
            }
            let peer = &self.session.infos[outgoing.peer as usize].info;
            outgoing.call = match dial(&peer.socket)? {
                Dialed::Gone => return Err(lost(self.session, outgoing.peer)),
                Dialed::Busy => Call::Waiting { again: now + outgoing.backoff.step() },
                Dialed::Connected(stream) => {
                    let found = Peer::of(&stream)?;
                    let own = self.session.infos[self.session.rank as usize].info.uid;
                    if let Some(conflict) = user_conflict(own, found.uid) {
                        return Err(refused(self.session, outgoing.peer, &conflict));
                    }
                    let (connector, hello) =
                        Connector::start(self.session, outgoing.peer, fresh_nonce()?);
                    let mut connection = Connection::new(stream);
                    match connection.send(&hello) {
                        Ok(()) => Call::Open { connection, connector },
                        Err(_) => Call::Waiting { again: now + outgoing.backoff.step() },
                    }
                }
            };
        }
        Ok(())
    }

    /// Do everything that can be done without waiting.
    fn serve(&mut self, rendezvous: &Rendezvous<'_>) -> Result<(), BootstrapError> {
        self.accept()?;
        let mut at = 0;
        while at < self.outgoing.len() {
            if let Some(link) = serve_outgoing(self.session, &mut self.outgoing[at], rendezvous)? {
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
            let Some(stream) = self.listener.accept()? else { return Ok(()) };
            let peer = Peer::of(&stream)?;
            let own = self.session.infos[self.session.rank as usize].info.uid;
            if let Some(conflict) = user_conflict(own, peer.uid) {
                self.warn(peer, &conflict);
                continue;
            }
            // The oldest has had the most time. A rank that is dropped here calls again.
            if self.incoming.len() >= MAX_STRANGERS + self.awaited.len() {
                let oldest = self.incoming.remove(0);
                self.warn(oldest.peer, "too many connections that do not prove who they are");
            }
            self.incoming.push(Incoming {
                connection: Connection::new(stream),
                acceptor: Acceptor::new(fresh_nonce()?),
                peer,
                deadline: Instant::now() + ACCEPT_TIMEOUT,
                linked: None,
            });
        }
        Ok(())
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
                let link = link(self.session, rank, incoming.peer, incoming.connection);
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
        let (peer, claimed) = (incoming.peer, incoming.acceptor.claimed());
        if let Some(rank) = incoming.linked {
            // Proven, so this is no stranger but the rank itself that ended.
            return Err(lost(self.session, rank));
        }
        let who = claimed.map_or_else(String::new, |rank| format!("claiming to be rank {rank}: "));
        self.warn(peer, &format!("{who}{ended}"));
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
            if !listens(&self.session.infos[rank as usize].info.socket)? {
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
        let mut watch =
            |connection| fds.push(PollFd::new(AsFd::as_fd(connection), events(connection)));
        for outgoing in &self.outgoing {
            match &outgoing.call {
                Call::Waiting { again } => until = until.min(*again),
                Call::Open { connection, .. } => watch(connection),
            }
        }
        for incoming in &self.incoming {
            until = until.min(incoming.deadline);
            watch(&incoming.connection);
        }
        let left = until.saturating_duration_since(Instant::now());
        match poll(&mut fds, timeout(left)) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(BootstrapError::system("poll", error)),
        }
    }

    fn warn(&mut self, peer: Peer, what: &str) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(format!(
                "dropped a connection of pid {} (user {}): {}",
                peer.pid,
                peer.uid,
                printable(what.as_bytes(), 256),
            ));
        }
    }
}

fn serve_outgoing(
    session: &Session,
    outgoing: &mut Outgoing,
    rendezvous: &Rendezvous<'_>,
) -> Result<Option<Link>, BootstrapError> {
    let Call::Open { connection, connector } = &mut outgoing.call else { return Ok(None) };
    let peer = outgoing.peer;
    let ended = loop {
        if let Err(ended) = connection.flush() {
            break ended;
        }
        let frame = match connection.receive() {
            Ok(Some(frame)) => frame,
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
                let Call::Open { connection, .. } = std::mem::replace(&mut outgoing.call, again)
                else {
                    return Ok(None);
                };
                let stream = connection.into_stream();
                let found = Peer::of(&stream)?;
                return Ok(Some(link(session, rank, found, Connection::new(stream))));
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
        // Dropped for want of time or room, or the rank ended: the next call tells.
        Ended::Closed => {
            rendezvous.check_refused().or_else(ignore_store)?;
            outgoing.call = Call::Waiting { again: Instant::now() + outgoing.backoff.step() };
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

fn ignore_store(error: BootstrapError) -> Result<(), BootstrapError> {
    if matches!(error, BootstrapError::Store { .. }) { Ok(()) } else { Err(error) }
}

fn link(session: &Session, rank: u32, found: Peer, connection: Connection) -> Link {
    let published = session.infos[rank as usize].info.pid;
    let pid = if found.pid == 0 { published } else { found.pid };
    Link { rank, pid, stream: connection.into_stream() }
}

fn lost(session: &Session, peer: u32) -> BootstrapError {
    BootstrapError::PeerLost {
        name: session.name.clone(),
        rank: session.rank,
        peer,
        pid: session.infos[peer as usize].info.pid,
        during: "the ranks were linking".to_owned(),
    }
}

fn refused(session: &Session, peer: u32, reason: &str) -> BootstrapError {
    BootstrapError::Refused {
        name: session.name.clone(),
        rank: session.rank,
        reason: format!("link of rank {} to rank {peer}: {reason}", session.rank),
    }
}

fn fresh_nonce() -> Result<Nonce, BootstrapError> {
    let mut nonce = Nonce::default();
    getrandom::fill(&mut nonce).map_err(|e| BootstrapError::system("getrandom", e))?;
    Ok(nonce)
}

fn events(connection: &Connection) -> PollFlags {
    if connection.unsent() { PollFlags::POLLIN | PollFlags::POLLOUT } else { PollFlags::POLLIN }
}

/// Milliseconds for `poll`, rounded up so that it does not spin before a deadline.
pub(super) fn timeout(left: Duration) -> PollTimeout {
    let millis = left.as_nanos().div_ceil(1_000_000);
    PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
}
