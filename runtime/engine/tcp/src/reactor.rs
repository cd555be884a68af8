//! The thread that serves the connections, and turns of it that the driving thread takes itself.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::epoll::{EpollEvent, EpollFlags, EpollTimeout};
use stepccl_engine::RankState;

use crate::farewell::Farewell;
use crate::frame::Limits;
use crate::inbox::Inbox;
use crate::peer::{Peer, lock};
use crate::shared::Shared;

/// Event of [`Shared::event`]; peers have their index.
pub(crate) const WOKEN: u64 = u64::MAX;
/// Bytes received at once where their place is not known yet.
const BUFFER_BYTES: usize = 64 << 10;
/// Bytes sent to one peer before the others have their turn.
const SEND_BYTES: u64 = 1 << 20;
/// Connections served in one turn.
const EVENTS: usize = 64;
/// How often the end is looked at while it is under way, in milliseconds.
const CLOSING_MILLIS: u16 = 5;

/// The receiving sides of all connections.
#[derive(Debug)]
pub(crate) struct Reactor {
    pub(crate) inboxes: Vec<Inbox>,
    buffer: Box<[u8]>,
}

impl Reactor {
    pub(crate) fn new(peers: usize, limits: Limits) -> Self {
        Self {
            inboxes: (0..peers).map(|_| Inbox::new(limits)).collect(),
            buffer: vec![0; BUFFER_BYTES].into(),
        }
    }

    /// Serve what the events say. Whether something came that the driving thread may wait for.
    fn serve(&mut self, shared: &Shared, events: &[EpollEvent]) -> bool {
        let mut came = false;
        for event in events {
            if event.data() == WOKEN {
                // Nobody else reads it; what it wakes for is in other places.
                let _ = shared.event.read();
                continue;
            }
            let Ok(index) = usize::try_from(event.data()) else { continue };
            let (Some(peer), Some(inbox)) = (shared.peers.get(index), self.inboxes.get_mut(index))
            else {
                continue;
            };
            if peer.is_gone() {
                continue;
            }
            let events = event.events();
            if events.contains(EpollFlags::EPOLLOUT) {
                let mut outbox = peer.outbox();
                peer.flush(&mut outbox, &shared.epoll, SEND_BYTES);
            }
            if events != EpollFlags::EPOLLOUT {
                came |= inbox.receive(shared, peer, &mut self.buffer);
            }
        }
        came
    }
}

/// Body of the reactor's thread, until the engine is dropped.
pub(crate) fn run(shared: &Shared) {
    let guard = GiveUpAll(shared);
    let mut farewell = None;
    loop {
        let closing = shared.closing.load(Ordering::Acquire);
        let timeout = if closing { EpollTimeout::from(CLOSING_MILLIS) } else { EpollTimeout::NONE };
        let mut events = [EpollEvent::empty(); EVENTS];
        match wait(shared, &mut events, timeout) {
            Ok(count) => {
                let came = lock(&shared.reactor).serve(shared, &events[..count]);
                if came {
                    shared.waker.wake();
                }
            }
            Err(_) => return,
        }
        if closing {
            let state = *lock(&shared.own_state);
            let farewell = farewell.get_or_insert_with(|| Farewell::new(shared, state));
            let reactor = lock(&shared.reactor);
            if farewell.step(shared, &reactor.inboxes, Instant::now()) {
                break;
            }
        }
    }
    std::mem::forget(guard);
}

/// Serve what is there without waiting, in place of the reactor's thread; whether something came.
/// Does nothing where that thread is at it.
pub(crate) fn help(shared: &Shared) -> bool {
    let Ok(mut reactor) = shared.reactor.try_lock() else { return false };
    let mut events = [EpollEvent::empty(); EVENTS];
    match wait(shared, &mut events, EpollTimeout::ZERO) {
        Ok(count) => reactor.serve(shared, &events[..count]),
        Err(_) => false,
    }
}

fn wait(shared: &Shared, events: &mut [EpollEvent], timeout: EpollTimeout) -> Result<usize, Errno> {
    match shared.epoll.wait(events, timeout) {
        Err(Errno::EINTR) => Ok(0),
        result => result,
    }
}

/// A thread that ends early leaves nobody waiting.
struct GiveUpAll<'a>(&'a Shared);

impl Drop for GiveUpAll<'_> {
    fn drop(&mut self) {
        for peer in &self.0.peers {
            self.0.give_up(peer, "the thread that serves it has ended", true);
        }
        self.0.waker.wake();
    }
}

/// Whether `peer` will ask for anything more.
pub(crate) fn leaves(peer: &Peer) -> bool {
    peer.is_gone() || peer.state() != RankState::Running
}

/// Watch a connection.
pub(crate) fn watch(shared: &Shared, peer: &Peer) -> Result<(), Errno> {
    let mut outbox = peer.outbox();
    let events = crate::peer::interest(&outbox, false);
    outbox.watched = Some(events);
    shared.epoll.add(peer.stream.as_fd(), EpollEvent::new(events, peer.index))
}
