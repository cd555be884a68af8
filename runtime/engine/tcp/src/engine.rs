//! The engine itself: the contract over a host engine and connections.

mod boards;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use stepccl_engine::{
    Address, Board, BoardShape, Capabilities, Combination, Completion, Engine, EngineError, Look,
    LostPeer, Meter, Operation, Part, PartMut, RankState, Reason, RegionId, Staging, Submission,
    UserMemory, Wake,
};
use stepccl_engine_host::HostEngine;
use stepccl_plan::Targets;

use crate::area::Area;
use crate::frame::{Frame, Limits};
use crate::job::Job;
use crate::peer::{Peer, lock};
use crate::scratch::Scratch;
use crate::shared::Shared;
use crate::shelf::Shelf;
use crate::{TcpConfig, TcpError, TcpLink, reactor, socket};

/// Tokens of this engine, which those of the host engine never reach.
const OWN_TOKENS: u64 = 1 << 63;

/// How a rank is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By the host engine, which numbers it so.
    Host(u32),
    /// By the connection with that index.
    Peer(usize),
}

/// Moves bytes between nodes over TCP, and within one like the host engine it has.
pub struct TcpEngine {
    pub(crate) host: HostEngine,
    pub(crate) shared: Arc<Shared>,
    /// The reactor's thread, until the end.
    thread: Option<JoinHandle<()>>,
    ways: Vec<Way>,
    /// Rank of each rank of the host engine.
    local: Vec<u32>,
    staging: Vec<Staging>,
    /// Region of the staging of the first peer; those of the others follow.
    first_region: u32,
    pub(crate) jobs: HashMap<u64, Job>,
    pub(crate) next_job: u64,
    /// Jobs that wait for room of a connection.
    pub(crate) stalled: Vec<u64>,
    pub(crate) scratch: Scratch,
    pub(crate) meter: Arc<Meter>,
    pub(crate) completions: Vec<Completion>,
    /// Why this rank is about to fail.
    reason: Option<Reason>,
}

impl TcpEngine {
    /// Engine of one rank: `host` reaches the ranks of this node, in the order of
    /// [`TcpConfig::local`], and `links` has each other rank once, in any order.
    ///
    /// # Errors
    ///
    /// [`TcpError::BadLocal`], [`TcpError::BadLinks`], [`TcpError::LinkTimeout`] name the value;
    /// otherwise the system refused.
    pub fn new(
        config: &TcpConfig,
        mut host: HostEngine,
        links: Vec<TcpLink>,
    ) -> Result<Self, TcpError> {
        config.check()?;
        let (ways, links) = ways(config, links)?;
        let bad_local = || TcpError::BadLocal { local: config.local.clone(), rank: config.rank };
        let own_index =
            config.local.iter().position(|rank| *rank == config.rank).ok_or_else(bad_local)? as u32;
        if host.staging(config.local.len() as u32).is_some() {
            return Err(bad_local());
        }
        let own = host.staging(own_index).ok_or_else(bad_local)?;
        let base =
            host.pin(own.base, own.bytes, true).map_err(|source| TcpError::Host { source })?;
        // SAFETY:
        // - The staging is mapped as long as the host engine lives, and `drop` joins the thread
        //   that uses the area before that.
        let area = unsafe { Area::new(base, own.bytes) };
        let mut first_region = 0;
        let mut remote = Vec::with_capacity(links.len());
        for _ in &links {
            let region = host.reserve().map_err(|source| TcpError::Host { source })?;
            if remote.is_empty() {
                first_region = region.get();
            }
            // Regions of a new engine are numbered in order.
            debug_assert_eq!(first_region + remote.len() as u32, region.get());
            remote.push(Staging { base: Address::start_of(region), bytes: own.bytes });
        }
        let mut staging = Vec::with_capacity(ways.len());
        for way in &ways {
            staging.push(match *way {
                Way::Host(index) => host.staging(index).ok_or_else(bad_local)?,
                Way::Peer(index) => remote[index],
            });
        }
        let limits = Limits {
            flags: host.capabilities().flags,
            staging_bytes: own.bytes,
            post_bytes: board_bytes(host.board(Board::Collective)),
            pair_post_bytes: board_bytes(host.board(Board::Pair(0))),
        };
        let shared = open(config, limits, links, area, &host)?;
        let thread = std::thread::Builder::new()
            .name(format!("stepccl-tcp-{}", config.rank))
            .spawn({
                let shared = Arc::clone(&shared);
                move || reactor::run(&shared)
            })
            .map_err(|e| TcpError::system("start the thread that serves connections", e))?;
        Ok(Self {
            meter: host.meter(),
            host,
            shared,
            thread: Some(thread),
            ways,
            local: config.local.clone(),
            staging,
            first_region,
            jobs: HashMap::new(),
            next_job: OWN_TOKENS,
            stalled: Vec::new(),
            scratch: Scratch::default(),
            completions: Vec::new(),
            reason: None,
        })
    }

    /// Index of the peer in whose staging an address is.
    pub(crate) fn peer_of(&self, address: Address) -> Option<usize> {
        let index = address.region().checked_sub(self.first_region)? as usize;
        (index < self.shared.peers.len()).then_some(index)
    }

    fn unknown_flag(&self, rank: u32, flag: u32) -> EngineError {
        EngineError::UnknownFlag { rank, flag, flags: self.shared.limits.flags }
    }

    fn own_index(&self) -> u32 {
        match self.ways.get(self.shared.rank as usize) {
            Some(Way::Host(index)) => *index,
            // `new` refuses a rank that its own host engine does not reach.
            _ => 0,
        }
    }
}

impl Engine for TcpEngine {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn capabilities(&self) -> Capabilities {
        let host = self.host.capabilities();
        // The reactor's thread moves bytes beside the calling thread.
        // Memory of another node cannot be read, and nobody asks for that of some ranks only.
        Capabilities { channels: host.channels + 1, peer_user_memory: false, ..host }
    }

    fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    unsafe fn register(&mut self, memory: UserMemory) -> Result<RegionId, EngineError> {
        // SAFETY:
        // - The caller upholds the contract, which is the same.
        unsafe { self.host.register(memory) }
    }

    fn unregister(&mut self, region: RegionId) -> Result<(), EngineError> {
        self.host.unregister(region)
    }

    fn staging(&self, rank: u32) -> Option<Staging> {
        self.staging.get(rank as usize).copied()
    }

    fn submit(&mut self, operation: &Operation<'_>) -> Result<Submission, EngineError> {
        let remote = match operation {
            Operation::Copy { src, dst, .. } => {
                self.peer_of(*src).or_else(|| self.peer_of(*dst)).is_some()
            }
            Operation::Reduce { srcs, dst, .. } => {
                srcs.iter().chain([dst]).any(|address| self.peer_of(*address).is_some())
            }
        };
        if !remote {
            return self.host.submit(operation);
        }
        match *operation {
            Operation::Copy { src, dst, bytes } => self.copy(src, dst, bytes),
            Operation::Reduce { srcs, dst, count, dtype, op, divisor, scale } => {
                self.reduce(srcs, dst, count, crate::job::Sum { dtype, op, divisor, scale })
            }
        }
    }

    fn reap(&mut self, completions: &mut Vec<Completion>) -> Result<(), EngineError> {
        if !self.jobs.is_empty() {
            if !self.shared.any_ended() {
                reactor::help(&self.shared);
            }
            self.advance_jobs();
        }
        completions.append(&mut self.completions);
        self.host.reap(completions)
    }

    fn signal(&mut self, to: Targets, flag: u32, value: u64) -> Result<(), EngineError> {
        let (local, first, last) = match to {
            Targets::All => (Targets::All, 0, self.shared.peers.len()),
            Targets::One(rank) => match self.ways.get(rank as usize) {
                Some(Way::Host(index)) => (Targets::One(*index), 0, 0),
                Some(Way::Peer(peer)) => (Targets::One(self.own_index()), *peer, peer + 1),
                None => return Err(self.unknown_flag(rank, flag)),
            },
        };
        if flag >= self.shared.limits.flags {
            let rank = match to {
                Targets::One(rank) => rank,
                Targets::All => self.shared.rank,
            };
            return Err(self.unknown_flag(rank, flag));
        }
        self.host.signal(local, flag, value)?;
        for peer in &self.shared.peers[first..last] {
            self.shared.send(peer, |outbox| outbox.flag(flag, value));
        }
        Ok(())
    }

    #[inline]
    fn flag(&self, from: u32, flag: u32) -> Result<u64, EngineError> {
        match self.ways.get(from as usize) {
            Some(Way::Host(index)) => {
                self.host.flag(*index, flag).map_err(|_| self.unknown_flag(from, flag))
            }
            Some(Way::Peer(peer)) => match self.shared.flag(*peer, flag) {
                Some(word) => Ok(word.load(Ordering::Acquire)),
                None => Err(self.unknown_flag(from, flag)),
            },
            None => Err(self.unknown_flag(from, flag)),
        }
    }

    fn board(&self, board: Board) -> Option<BoardShape> {
        self.board_shape(board)
    }

    unsafe fn post(
        &mut self,
        board: Board,
        number: u64,
        words: [u64; 2],
        parts: &[Part],
    ) -> Result<(), EngineError> {
        // SAFETY:
        // - The caller upholds the contract, which is the same.
        unsafe { self.put_post(board, number, words, parts) }
    }

    fn ring(&mut self, to: Targets) -> Result<(), EngineError> {
        // Ranks of other nodes are woken by what comes to them.
        match to {
            Targets::All => self.host.ring(to),
            Targets::One(rank) => match self.ways.get(rank as usize) {
                Some(Way::Host(index)) => self.host.ring(Targets::One(*index)),
                _ => Ok(()),
            },
        }
    }

    #[inline]
    fn look(&self, from: u32, board: Board, number: u64) -> Result<Look, EngineError> {
        self.look_at(from, board, number)
    }

    unsafe fn fetch(
        &mut self,
        from: u32,
        board: Board,
        number: u64,
        offset: usize,
        dst: PartMut,
    ) -> Result<(), EngineError> {
        // SAFETY:
        // - The caller upholds the contract, which is the same.
        unsafe { self.fetch_post(from, board, number, offset, dst) }
    }

    unsafe fn combine(
        &mut self,
        number: u64,
        offset: usize,
        own: *const u8,
        dst: *mut u8,
        how: Combination,
    ) -> Result<(), EngineError> {
        // SAFETY:
        // - The caller upholds the contract, which is the same.
        unsafe { self.combine_posts(number, offset, own, dst, how) }
    }

    fn park(
        &mut self,
        ready: &mut dyn FnMut(&dyn Engine) -> bool,
        limit: Duration,
    ) -> Result<(), EngineError> {
        let mut asleep = self.host.fall_asleep();
        // The reactor stores first and wakes then, so what these looks miss ends the sleep.
        asleep.awake = asleep.awake
            || self.shared.any_ended()
            || !self.completions.is_empty()
            || ready(&*self);
        let limit = self.host.nap(&mut asleep, limit);
        asleep.awake = asleep.awake || ready(&*self);
        self.host.sleep(&asleep, limit)
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.host.waker()
    }

    fn explain(&mut self, reason: &str) {
        self.reason = Some(Reason::new(reason));
        self.host.explain(reason);
    }

    fn announce(&mut self, state: RankState) {
        let before = std::mem::replace(&mut *lock(&self.shared.own_state), state);
        self.host.announce(state);
        let failed = matches!(state, RankState::Failed { .. });
        // Peers take one reason, before the end.
        let reason = self.reason.take().filter(|_| failed && before == RankState::Running);
        for peer in &self.shared.peers {
            self.shared.send(peer, |outbox| {
                if let Some(reason) = &reason {
                    outbox.reason(reason);
                }
                outbox.frame(Frame::State(state));
            });
        }
        if failed {
            // Nothing can be right any more, and the callers want their memory back.
            self.shared.cancel();
        }
    }

    fn lost_peers(&mut self, lost: &mut Vec<LostPeer>) {
        let before = lost.len();
        self.host.lost_peers(lost);
        for peer in &mut lost[before..] {
            peer.rank = self.local.get(peer.rank as usize).copied().unwrap_or(peer.rank);
        }
        lost.extend(
            self.shared.peers.iter().filter(|peer| reactor::leaves(peer)).map(|peer| LostPeer {
                rank: peer.rank,
                pid: peer.pid,
                state: peer.state(),
            }),
        );
    }

    fn why_lost(&self, rank: u32) -> Option<String> {
        match self.ways.get(rank as usize)? {
            Way::Host(rank) => self.host.why_lost(*rank),
            Way::Peer(peer) => {
                let peer = &self.shared.peers[*peer];
                match peer.state() {
                    RankState::Failed { .. } => peer.why_failed(),
                    RankState::Running | RankState::Closed => peer.why_cut().map(str::to_owned),
                }
            }
        }
    }
}

impl Drop for TcpEngine {
    fn drop(&mut self) {
        if *lock(&self.shared.own_state) == RankState::Running {
            // A thread that panics has not left in good order.
            self.announce(if std::thread::panicking() {
                RankState::Failed { culprit: self.shared.rank }
            } else {
                RankState::Closed
            });
        }
        // Whoever drops an engine at work gets its memory back.
        self.shared.cancel();
        self.shared.closing.store(true, Ordering::Release);
        // Fails only where it counts 2^64 wake-ups already; the thread is awake then.
        let _ = self.shared.event.write(1);
        if let Some(thread) = self.thread.take() {
            // Its panic was printed; nothing is left to be done about it.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for TcpEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpEngine")
            .field("rank", &self.shared.rank)
            .field("ways", &self.ways)
            .field("jobs", &self.jobs.len())
            .finish_non_exhaustive()
    }
}

/// How each rank is reached, and the links by rank.
fn ways(config: &TcpConfig, mut links: Vec<TcpLink>) -> Result<(Vec<Way>, Vec<TcpLink>), TcpError> {
    links.sort_by_key(|link| link.rank);
    let mut ways = Vec::with_capacity(config.ranks as usize);
    let mut peers = 0;
    for rank in 0..config.ranks {
        let count = links.iter().filter(|link| link.rank == rank).count();
        let local = config.local.iter().position(|local| *local == rank);
        if count != usize::from(local.is_none()) {
            return Err(TcpError::BadLinks { rank, links: count });
        }
        ways.push(match local {
            Some(index) => Way::Host(index as u32),
            None => Way::Peer(peers),
        });
        peers += count;
    }
    if let Some(link) = links.iter().find(|link| link.rank >= config.ranks) {
        return Err(TcpError::BadLinks { rank: link.rank, links: 1 });
    }
    Ok((ways, links))
}

/// Bytes of data of a board's posts; none where there is no board.
fn board_bytes(shape: Option<BoardShape>) -> Option<u64> {
    shape.map(|shape| shape.bytes as u64)
}

/// The connections, greeted and watched.
fn open(
    config: &TcpConfig,
    limits: Limits,
    links: Vec<TcpLink>,
    staging: Area,
    host: &HostEngine,
) -> Result<Arc<Shared>, TcpError> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
        .map_err(|e| TcpError::system("epoll_create", e))?;
    let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
        .map_err(|e| TcpError::system("eventfd", e))?;
    epoll
        .add(&event, EpollEvent::new(EpollFlags::EPOLLIN, reactor::WOKEN))
        .map_err(|e| TcpError::system("epoll_ctl", e))?;
    let mut peers = Vec::with_capacity(links.len());
    for (link, index) in links.into_iter().zip(0..) {
        socket::configure(&link.stream, config.link_timeout)?;
        let shelf = |board| Shelf::new(host.board(board));
        let shelves = (shelf(Board::Collective), shelf(Board::Pair(0)));
        peers.push(Peer::new((link.rank, link.pid), link.stream, index, shelves));
    }
    let ranks = (config.rank, config.ranks);
    let shared = Shared::new(ranks, limits, peers, staging, epoll, event, host.waker());
    for peer in &shared.peers {
        reactor::watch(&shared, peer).map_err(|e| TcpError::system("epoll_ctl", e))?;
        shared.send(peer, |outbox| outbox.frame(shared.hello()));
    }
    Ok(Arc::new(shared))
}
