//! What the driving thread and the reactor's thread share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use nix::sys::epoll::Epoll;
use nix::sys::eventfd::EventFd;
use stepccl_engine::{EngineError, RankState, Wake};

use crate::area::Area;
use crate::frame::{CHUNK_BYTES, Frame, Limits, VERSION};
use crate::peer::{Peer, lock};
use crate::reactor::Reactor;

/// End of one transfer.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) job: u64,
    pub(crate) error: Option<EngineError>,
}

/// What the driving thread and the reactor's thread share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    pub(crate) limits: Limits,
    pub(crate) peers: Box<[Peer]>,
    /// Own staging. Valid until the engine has joined the reactor's thread.
    pub(crate) staging: Area,
    pub(crate) epoll: Epoll,
    /// Wakes the reactor's thread.
    pub(crate) event: EventFd,
    /// Wakes the driving thread.
    pub(crate) waker: Arc<dyn Wake>,
    /// What became of this rank.
    pub(crate) own_state: Mutex<RankState>,
    /// The engine is being dropped.
    pub(crate) closing: AtomicBool,
    pub(crate) reactor: Mutex<Reactor>,
    /// Values of the peers' flags, peer after peer; written by the reactor.
    flags: Box<[AtomicU64]>,
    ended: Mutex<Vec<Ended>>,
    any_ended: AtomicBool,
}

impl Shared {
    pub(crate) fn new(
        (rank, ranks): (u32, u32),
        limits: Limits,
        peers: Vec<Peer>,
        staging: Area,
        epoll: Epoll,
        event: EventFd,
        waker: Arc<dyn Wake>,
    ) -> Self {
        let flags = (0..peers.len() * limits.flags as usize).map(|_| AtomicU64::new(0)).collect();
        let reactor = Mutex::new(Reactor::new(peers.len(), limits));
        Self {
            rank,
            ranks,
            limits,
            peers: peers.into(),
            staging,
            epoll,
            event,
            waker,
            own_state: Mutex::new(RankState::Running),
            closing: AtomicBool::new(false),
            reactor,
            flags,
            ended: Mutex::default(),
            any_ended: AtomicBool::new(false),
        }
    }

    /// The first frame to every peer.
    pub(crate) fn hello(&self) -> Frame {
        let Limits { flags, staging_bytes, .. } = self.limits;
        Frame::Hello { version: VERSION, flags, rank: self.rank, ranks: self.ranks, staging_bytes }
    }

    /// Flag of the peer with that index, where there is such a flag.
    #[inline]
    pub(crate) fn flag(&self, peer: usize, flag: u32) -> Option<&AtomicU64> {
        if flag >= self.limits.flags {
            return None;
        }
        self.flags.get(peer * self.limits.flags as usize + flag as usize)
    }

    /// Queue frames for a peer and send what can be sent at once.
    pub(crate) fn send(&self, peer: &Peer, fill: impl FnOnce(&mut crate::outbox::Outbox)) {
        let mut outbox = peer.outbox();
        fill(&mut outbox);
        if !outbox.blocked {
            // More than a chunk is left to the reactor, which is told when the socket has room.
            peer.flush(&mut outbox, &self.epoll, CHUNK_BYTES);
        }
    }

    /// A transfer has ended.
    pub(crate) fn end(&self, job: u64, error: Option<EngineError>) {
        lock(&self.ended).push(Ended { job, error });
        self.any_ended.store(true, Ordering::Release);
    }

    /// Whether a transfer has ended that was not taken.
    #[inline]
    pub(crate) fn any_ended(&self) -> bool {
        self.any_ended.load(Ordering::Acquire)
    }

    /// Transfers that have ended.
    pub(crate) fn take_ended(&self) -> Vec<Ended> {
        let mut ended = lock(&self.ended);
        self.any_ended.store(false, Ordering::Release);
        std::mem::take(&mut ended)
    }

    /// Why transfers with `peer` cannot be.
    pub(crate) fn lost(peer: &Peer) -> EngineError {
        let detail = match (peer.why(), peer.state()) {
            (Some(why), _) => why.to_owned(),
            (None, RankState::Closed) => "it has closed".to_owned(),
            (None, RankState::Failed { culprit }) => {
                format!("it has failed and blames rank {culprit}")
            }
            (None, RankState::Running) => "all transfers were cancelled".to_owned(),
        };
        EngineError::Lost { rank: peer.rank, detail }
    }

    /// Nothing more can come from `peer`, for this reason; see [`Peer::give_up`].
    pub(crate) fn give_up(&self, peer: &Peer, reason: &str, cut: bool) {
        for job in peer.give_up(reason, cut) {
            self.end(job, Some(Self::lost(peer)));
        }
        // Fails only where it is not watched any more.
        let _ = self.epoll.delete(&peer.stream);
    }

    /// Touch no memory of a caller any more.
    pub(crate) fn cancel(&self) {
        for peer in &self.peers {
            for job in peer.cancel() {
                self.end(job, Some(Self::lost(peer)));
            }
        }
    }
}
