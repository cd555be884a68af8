//! One rank of another node: its connection and what is known of it.

use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use stepccl_engine::{RankState, Reason};

use crate::outbox::{Flushed, MANY_FRAMES, Outbox};
use crate::shelf::Shelf;
use crate::socket;
use crate::transfers::Transfers;

/// One rank of another node.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) rank: u32,
    pub(crate) pid: u32,
    /// Address of its end, for messages.
    pub(crate) address: String,
    pub(crate) stream: TcpStream,
    /// Its number among the peers, which names it in events.
    pub(crate) index: u64,
    /// Its board of collectives.
    pub(crate) collective: Shelf,
    /// Its board for this rank.
    pub(crate) pair: Shelf,
    /// Lock order: `outbox` before `transfers`, where both are held.
    outbox: Mutex<Outbox>,
    transfers: Mutex<Transfers>,
    /// What it left of its staging, once it says goodbye.
    will: Mutex<Option<Box<[u8]>>>,
    said: AtomicU64,
    /// Why it failed, in its words.
    reason: OnceLock<Reason>,
    gone: AtomicBool,
    why: OnceLock<String>,
    /// The other side's kernel did not end the connection: more than its process is gone.
    cut: AtomicBool,
}

/// Take a lock whether or not another thread panicked with it: what it guards is only data for a
/// peer that is given up then.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Peer {
    pub(crate) fn new(
        (rank, pid): (u32, u32),
        stream: TcpStream,
        index: u64,
        (collective, pair): (Shelf, Shelf),
    ) -> Self {
        let address =
            stream.peer_addr().map_or_else(|_| "a closed connection".into(), |a| a.to_string());
        Self {
            rank,
            pid,
            address,
            stream,
            index,
            collective,
            pair,
            outbox: Mutex::default(),
            transfers: Mutex::default(),
            will: Mutex::default(),
            said: AtomicU64::new(0),
            reason: OnceLock::new(),
            gone: AtomicBool::new(false),
            why: OnceLock::new(),
            cut: AtomicBool::new(false),
        }
    }

    pub(crate) fn outbox(&self) -> MutexGuard<'_, Outbox> {
        lock(&self.outbox)
    }

    pub(crate) fn transfers(&self) -> MutexGuard<'_, Transfers> {
        lock(&self.transfers)
    }

    pub(crate) fn will(&self) -> MutexGuard<'_, Option<Box<[u8]>>> {
        lock(&self.will)
    }

    /// The last it said of itself.
    pub(crate) fn state(&self) -> RankState {
        match self.said.load(Ordering::Acquire) {
            0 => RankState::Running,
            1 => RankState::Closed,
            word => RankState::Failed { culprit: (word >> 32) as u32 },
        }
    }

    /// It said what became of it. The first end stands.
    pub(crate) fn says(&self, state: RankState) {
        let word = match state {
            RankState::Running => return,
            RankState::Closed => 1,
            RankState::Failed { culprit } => u64::from(culprit) << 32 | 2,
        };
        let _ = self.said.compare_exchange(0, word, Ordering::AcqRel, Ordering::Acquire);
    }

    /// It said why it fails. False where that is no time to say so: it did before, or it has ended.
    pub(crate) fn explains(&self, reason: Reason) -> bool {
        self.state() == RankState::Running && self.reason.set(reason).is_ok()
    }

    /// Why it failed, where it said so. What its connection came to is not told here.
    pub(crate) fn why_failed(&self) -> Option<String> {
        self.reason.get()?.text()
    }

    /// Whether nothing will come from it any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Why it is gone.
    pub(crate) fn why(&self) -> Option<&str> {
        self.why.get().map(String::as_str)
    }

    /// Why it is gone, where more is gone than its process.
    pub(crate) fn why_cut(&self) -> Option<&str> {
        if self.cut.load(Ordering::Acquire) { self.why() } else { None }
    }

    /// Give the peer up for this reason; the jobs that waited for it. `cut` says that its kernel
    /// did not end the connection.
    pub(crate) fn give_up(&self, reason: &str, cut: bool) -> Vec<u64> {
        // The first reason stands.
        if self.why.set(format!("connection to {}: {reason}", self.address)).is_ok() {
            self.cut.store(cut, Ordering::Release);
        }
        self.gone.store(true, Ordering::Release);
        let jobs = self.cancel();
        // Whoever waits at the other end learns of it at once.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        jobs
    }

    /// Touch no memory of a caller any more; the jobs that were under way.
    pub(crate) fn cancel(&self) -> Vec<u64> {
        self.outbox().withdraw();
        self.transfers().close()
    }

    /// Send some of what waits, and have the reactor told when more can be sent. A connection that
    /// failed is found out by the reactor when it reads.
    pub(crate) fn flush(&self, outbox: &mut Outbox, epoll: &Epoll, budget: u64) {
        if self.is_gone() {
            return;
        }
        let stream = self.stream.as_fd();
        let flushed = outbox.flush(budget, &mut |area, more| socket::send(stream, area, more));
        let wants_out = match flushed {
            Ok(Flushed::All) => false,
            Ok(Flushed::Some) => true,
            Err(error) => {
                let _ = self.why.set(format!("connection to {}: {}", self.address, reason(error)));
                // The reactor sees the end of both ways and does the rest.
                let _ = self.stream.shutdown(std::net::Shutdown::Both);
                false
            }
        };
        outbox.watch(self, epoll, wants_out);
    }
}

/// What an error of a connection means to its user.
pub(crate) fn reason(error: Errno) -> String {
    match error {
        Errno::ETIMEDOUT => {
            "no answer within the link timeout; the link is cut or the host is down \
                             (STEPCCL_LINK_TIMEOUT is that time)"
                .to_owned()
        }
        Errno::EHOSTUNREACH | Errno::ENETUNREACH => {
            format!("{}; the link is cut or the host is down", error.desc())
        }
        Errno::ECONNRESET | Errno::EPIPE => "the process ended or closed it".to_owned(),
        other => other.desc().to_owned(),
    }
}

/// Events that the reactor wants of a peer.
pub(crate) fn interest(outbox: &Outbox, wants_out: bool) -> EpollFlags {
    let mut events = EpollFlags::empty();
    // A peer that takes no answers gets no more to answer.
    events.set(EpollFlags::EPOLLIN, outbox.waiting_frames() < MANY_FRAMES);
    events.set(EpollFlags::EPOLLOUT, wants_out);
    events
}

impl Outbox {
    fn watch(&mut self, peer: &Peer, epoll: &Epoll, wants_out: bool) {
        let wanted = interest(self, wants_out);
        if self.watched.replace(wanted) != Some(wanted) {
            let mut event = EpollEvent::new(wanted, peer.index);
            // Fails only for a socket that the reactor has dropped already.
            let _ = epoll.modify(&peer.stream, &mut event);
        }
    }
}
