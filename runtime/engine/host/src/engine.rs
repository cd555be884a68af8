//! The engine itself: the contract over lanes and regions.

mod beside;
mod peers;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use stepccl_engine::{
    Address, Board, BoardShape, Capabilities, Combination, Completion, Engine, EngineError, Look,
    LostPeer, Meter, Operation, Part, PartMut, REASON_BYTES, RankState, Reason, RegionId, Scale,
    Staging, Submission, UserMemory, Wake,
};
use stepccl_memory::{MemoryError, Segment};
use stepccl_plan::{DType, ReduceOp, Targets};

use crate::channel::Channels;
use crate::config::{HostConfig, PeerLink};
use crate::giving_up;
use crate::header;
use crate::kernel;
use crate::lane::Lane;
use crate::lanes;
use crate::layout::{Layout, REASON, STATE};
use crate::liveness::{self, Peer};
use crate::post::Post;
use crate::region::Registry;
use crate::sleep;
use crate::waker::HostWaker;
use crate::words::LaneWords;
use crate::{HostError, check};

/// Sources of a reduce whose pointers need no allocation.
const FEW_SOURCES: usize = 16;

/// Bytes of a segment that get their frames when it is made. What is beyond gets them when it is
/// touched, so that a mistaken setting does not take the machine's memory at once.
const POPULATED_BYTES: usize = 64 << 20;

/// How long the end of an engine waits for peers that write memory of this process.
const LAST_WRITES: Duration = Duration::from_secs(10);

/// Moves and adds bytes in shared memory, on the calling thread and on channels.
#[derive(Debug)]
pub struct HostEngine {
    config: HostConfig,
    layout: Layout,
    /// Segment of every rank, own included, by rank.
    lanes: Vec<Lane>,
    /// Address of the staging of every rank, by rank.
    staging: Vec<Address>,
    peers: Vec<Peer>,
    registry: Registry,
    channels: Channels,
    waker: Arc<HostWaker>,
    meter: Arc<Meter>,
    /// Value of the own doorbell up to which every ring has been answered by a look at the flags.
    seen_doorbell: u32,
    state: RankState,
}

impl HostEngine {
    /// Own segment of a rank, to pass to the peers before [`HostEngine::new`]. Its first
    /// 64 MiB get their frames now, near the calling thread.
    ///
    /// # Errors
    ///
    /// [`HostError`] names the value out of range, or why the system refused.
    pub fn create_segment(config: &HostConfig) -> Result<Segment, HostError> {
        let layout = config.layout()?;
        let memory = |source| HostError::Memory { rank: config.rank, source };
        let name = format!("stepccl-rank-{}", config.rank);
        let segment = Segment::create(&name, layout.segment_bytes()).map_err(memory)?;
        segment.populate(0, segment.bytes().min(POPULATED_BYTES)).map_err(memory)?;
        header::write(segment.view(), config.rank, config.ranks, layout).map_err(memory)?;
        let running = header::encode_state(RankState::Running);
        segment.view().write_u64(STATE, running).map_err(memory)?;
        Ok(segment)
    }

    /// Engine of one rank: `own` is from [`HostEngine::create_segment`] with the same `config`,
    /// and `peers` has each other rank once, in any order.
    ///
    /// # Errors
    ///
    /// [`HostError::Header`] names the rank and the field in which a segment differs from this
    /// rank's configuration; [`HostError::BadLinks`] the rank whose link lacks; and otherwise as
    /// [`HostEngine::create_segment`].
    pub fn new(config: HostConfig, own: Segment, peers: Vec<PeerLink>) -> Result<Self, HostError> {
        let layout = config.layout()?;
        let (lanes, peers) = lanes::connect(&config, layout, own, peers)?;
        let mut registry = Registry::new();
        let mut staging = Vec::with_capacity(lanes.len());
        for (lane, rank) in lanes.iter().zip(0..) {
            let memory = UserMemory {
                base: lane.segment().base().wrapping_add(layout.staging()),
                bytes: layout.staging_bytes() as u64,
                writable: true,
                streaming: false,
            };
            let region = registry.register_staging(memory).map_err(|_| HostError::BadRank {
                rank,
                ranks: config.ranks,
                limit: crate::MAX_RANKS,
            })?;
            staging.push(Address::start_of(region));
        }
        let own = &lanes[config.rank as usize];
        Ok(Self {
            channels: Channels::start(config.channels, registry.table(), own)?,
            waker: Arc::new(HostWaker::new(own.clone())),
            seen_doorbell: own.doorbell(),
            config,
            layout,
            lanes,
            staging,
            peers,
            registry,
            meter: Arc::default(),
            state: RankState::Running,
        })
    }

    #[inline]
    fn own(&self) -> &Lane {
        // `new` checked that the rank is one of the ranks.
        &self.lanes[self.config.rank as usize]
    }

    #[inline]
    fn copy(&mut self, src: Address, dst: Address, bytes: u64) -> Result<Submission, EngineError> {
        let copy = check::copy(self.registry.table(), src, dst, bytes)?;
        if bytes >= self.config.channel_min_bytes && !self.channels.is_empty() && bytes > 0 {
            // An entry has 32 bits of length; a longer copy is done here.
            if let Ok(length) = u32::try_from(bytes) {
                return self.give(src, dst, length);
            }
        }
        // SAFETY:
        // - Both ranges are in registered memory, which is valid until it is unregistered; that
        //   takes `&mut self`, so not during this call.
        // - The destination may be written, and the ranges do not overlap.
        unsafe {
            if self.registry.table().is_streaming(dst) {
                kernel::copy_stream(copy.dst, copy.src, copy.bytes);
            } else {
                kernel::copy(copy.dst, copy.src, copy.bytes);
            }
        }
        self.meter.copied_bytes.add(bytes);
        self.meter.inline_operations.add(1);
        Ok(Submission::Done)
    }

    /// Give a checked copy to a channel.
    fn give(&mut self, src: Address, dst: Address, length: u32) -> Result<Submission, EngineError> {
        Ok(match self.channels.give(src, dst, length)? {
            Some(token) => {
                self.meter.channel_operations.add(1);
                Submission::InProgress(token)
            }
            None => {
                self.meter.full.add(1);
                Submission::Full
            }
        })
    }

    fn reduce(
        &mut self,
        srcs: &[Address],
        dst: Address,
        count: u64,
        (dtype, op, divisor): (DType, ReduceOp, u32),
        scale: Option<Scale>,
    ) -> Result<Submission, EngineError> {
        check::combination(dtype, op, scale.is_some())?;
        let table = self.registry.table();
        let (to, bytes) = check::reduce_dst(table, srcs.len(), dst, count, dtype)?;
        let mut few = [std::ptr::null(); FEW_SOURCES];
        let mut many;
        let from: &mut [*const u8] = if srcs.len() <= FEW_SOURCES {
            &mut few[..srcs.len()]
        } else {
            many = vec![std::ptr::null(); srcs.len()];
            &mut many
        };
        for (from, src) in from.iter_mut().zip(srcs) {
            *from = check::reduce_src(table, *src, (to, dst), bytes)?;
        }
        // SAFETY:
        // - All ranges are of `count` elements in registered memory, which is valid until it is
        //   unregistered; that takes `&mut self`, so not during this call.
        // - The destination may be written, and each source is it or does not overlap it.
        // - Every pattern of bits is an element.
        unsafe {
            if let Some(Scale { source, factor }) = scale {
                let (count, scaled) = (count as usize, source as usize);
                kernel::reduce_scaled(to, from, count, dtype, op, divisor, (scaled, factor));
            } else if table.is_streaming(dst) {
                kernel::reduce_stream(to, from, count as usize, dtype, op, divisor);
            } else {
                kernel::reduce(to, from, count as usize, dtype, op, divisor);
            }
        }
        self.meter.reduced_bytes.add(bytes);
        self.meter.inline_operations.add(1);
        Ok(Submission::Done)
    }

    /// Post of a rank, where `end` bytes of data fit into it.
    #[inline]
    fn post_of(
        &self,
        rank: u32,
        board: Board,
        number: u64,
        end: usize,
    ) -> Result<Post<'_>, EngineError> {
        match self.lanes.get(rank as usize).and_then(|lane| lane.post(board, number, end)) {
            Some(post) => Ok(post),
            None => Err(self.no_post(board, number, end)),
        }
    }

    #[cold]
    fn no_post(&self, board: Board, number: u64, bytes: usize) -> EngineError {
        let limit = self.layout.board(board).map_or(0, |shape| shape.bytes);
        EngineError::NoPost { board, number, bytes, limit }
    }

    /// Lanes of `to`. The own one may be among them: this thread is awake.
    #[inline]
    fn lanes_of(&self, to: Targets) -> &[Lane] {
        match to {
            Targets::One(rank) => {
                self.lanes.get(rank as usize).map_or(&[][..], std::slice::from_ref)
            }
            Targets::All => &self.lanes,
        }
    }

    fn unknown_flag(&self, rank: u32, flag: u32) -> EngineError {
        EngineError::UnknownFlag { rank, flag, flags: self.layout.flags() }
    }
}

impl Engine for HostEngine {
    fn name(&self) -> &'static str {
        "host"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            reduces: true,
            peer_user_memory: true,
            channels: self.config.channels,
            max_reduce_sources: check::MAX_SOURCES,
            flags: self.layout.flags(),
        }
    }

    fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    unsafe fn register(&mut self, memory: UserMemory) -> Result<RegionId, EngineError> {
        self.registry.register(memory)
    }

    fn unregister(&mut self, region: RegionId) -> Result<(), EngineError> {
        self.registry.unregister(region)
    }

    fn staging(&self, rank: u32) -> Option<Staging> {
        let base = *self.staging.get(rank as usize)?;
        Some(Staging { base, bytes: self.layout.staging_bytes() as u64 })
    }

    fn submit(&mut self, operation: &Operation<'_>) -> Result<Submission, EngineError> {
        match *operation {
            Operation::Copy { src, dst, bytes } => self.copy(src, dst, bytes),
            Operation::Reduce { srcs, dst, count, dtype, op, divisor, scale } => {
                self.reduce(srcs, dst, count, (dtype, op, divisor), scale)
            }
        }
    }

    fn reap(&mut self, completions: &mut Vec<Completion>) -> Result<(), EngineError> {
        self.meter.copied_bytes.add(self.channels.reap(completions)?);
        Ok(())
    }

    fn signal(&mut self, to: Targets, flag: u32, value: u64) -> Result<(), EngineError> {
        let known = match to {
            Targets::One(rank) => self.lanes.get(rank as usize).map(|_| rank),
            Targets::All => Some(self.config.rank),
        };
        let word = known.and_then(|_| self.own().flag(flag)).ok_or_else(|| match to {
            Targets::One(rank) => self.unknown_flag(rank, flag),
            Targets::All => self.unknown_flag(self.config.rank, flag),
        })?;
        // Everything this thread wrote before is visible to whoever sees the value.
        word.store(value, Ordering::Release);
        self.meter.signals.add(1);
        let woken = || self.meter.wakes.add(1);
        sleep::wake_sleepers(self.own(), self.lanes_of(to), woken).map_err(system)
    }

    #[inline]
    fn flag(&self, from: u32, flag: u32) -> Result<u64, EngineError> {
        match self.lanes.get(from as usize).and_then(|lane| lane.flag(flag)) {
            Some(word) => Ok(word.load(Ordering::Acquire)),
            None => Err(self.unknown_flag(from, flag)),
        }
    }

    fn board(&self, board: Board) -> Option<BoardShape> {
        self.layout.board(board)
    }

    unsafe fn post(
        &mut self,
        board: Board,
        number: u64,
        words: [u64; 2],
        parts: &[Part],
    ) -> Result<(), EngineError> {
        let bytes = parts.iter().map(|p| p.bytes).sum();
        let post = self.post_of(self.config.rank, board, number, bytes)?;
        // SAFETY:
        // - This rank's posts are written here only, and the caller knows that nobody reads what
        //   stood there.
        // - The caller vouches for the parts; `post_of` checked that they fit.
        unsafe { post.write(number, words, parts) };
        self.meter.posts.add(1);
        self.meter.posted_bytes.add(bytes as u64);
        Ok(())
    }

    fn ring(&mut self, to: Targets) -> Result<(), EngineError> {
        // No fence: it would wait until the posts are visible. Who is missed is in its nap.
        sleep::wake_who_is_seen(self.lanes_of(to), || self.meter.wakes.add(1)).map_err(system)
    }

    #[inline]
    fn look(&self, from: u32, board: Board, number: u64) -> Result<Look, EngineError> {
        Ok(self.post_of(from, board, number, 0)?.look(number))
    }

    unsafe fn fetch(
        &mut self,
        from: u32,
        board: Board,
        number: u64,
        offset: usize,
        dst: PartMut,
    ) -> Result<(), EngineError> {
        let post = self.post_of(from, board, number, offset.saturating_add(dst.bytes))?;
        // SAFETY:
        // - `post_of` checked that the range lies in the post; the caller vouches for `dst`, which
        //   is not in a segment, since those are not handed out.
        unsafe { kernel::copy(dst.base, post.data().add(offset), dst.bytes) };
        if let Ok(next) = self.post_of(from, board, number + 1, 0) {
            next.prefetch();
        }
        Ok(())
    }

    unsafe fn combine(
        &mut self,
        number: u64,
        offset: usize,
        own: *const u8,
        dst: *mut u8,
        how: Combination,
    ) -> Result<(), EngineError> {
        let Combination { count, dtype, op, divisor } = how;
        check::combination(dtype, op, false)?;
        let bytes = count.saturating_mul(dtype.size());
        let mut few = [std::ptr::null(); FEW_SOURCES];
        let mut many;
        let from: &mut [*const u8] = if self.lanes.len() <= FEW_SOURCES {
            &mut few[..self.lanes.len()]
        } else {
            many = vec![std::ptr::null(); self.lanes.len()];
            &mut many
        };
        for (from, rank) in from.iter_mut().zip(0..) {
            let post =
                self.post_of(rank, Board::Collective, number, offset.saturating_add(bytes))?;
            *from = if rank == self.config.rank { own } else { post.data().wrapping_add(offset) };
        }
        // SAFETY:
        // - `post_of` checked that the ranges lie in posts, and every pattern of bits is an
        //   element; the caller vouches for `own` and `dst`, which are not in a segment.
        unsafe { kernel::reduce(dst, from, count, dtype, op, divisor) };
        Ok(())
    }

    unsafe fn pull(
        &mut self,
        from: u32,
        address: u64,
        dst: PartMut,
        streaming: bool,
    ) -> Result<(), EngineError> {
        if from != self.config.rank {
            // SAFETY:
            // - The caller vouches for `dst`.
            return unsafe { self.read_peer(from, address, dst) };
        }
        let src = std::ptr::with_exposed_provenance(address as usize);
        // SAFETY:
        // - The caller vouches for both; they are memory of this process, the same or apart.
        unsafe {
            if streaming {
                kernel::copy_stream(dst.base, src, dst.bytes);
            } else {
                kernel::copy(dst.base, src, dst.bytes);
            }
        }
        self.meter.copied_bytes.add(dst.bytes as u64);
        Ok(())
    }

    unsafe fn push(&mut self, to: u32, address: u64, src: Part) -> Result<(), EngineError> {
        // SAFETY:
        // - The caller vouches for `src`.
        unsafe { self.write_peer(to, address, src) }
    }

    fn settle(&mut self, limit: Duration) -> bool {
        self.wait_for_writers(limit)
    }

    fn park(
        &mut self,
        ready: &mut dyn FnMut(&dyn Engine) -> bool,
        limit: Duration,
    ) -> Result<(), EngineError> {
        let mut asleep = self.fall_asleep();
        asleep.awake = asleep.awake || ready(&*self);
        let limit = self.nap(&mut asleep, limit);
        asleep.awake = asleep.awake || ready(&*self);
        self.sleep(&asleep, limit)
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.waker.clone()
    }

    fn explain(&mut self, reason: &str) {
        if self.state == RankState::Running {
            // The header is in every segment. Peers read it after the state, which follows.
            let reason = Reason::new(reason);
            let _ = self.own().segment().view().copy_in(REASON, reason.as_bytes());
        }
    }

    fn why_lost(&self, rank: u32) -> Option<String> {
        let lane = self.lanes.get(rank as usize)?;
        let state = header::decode_state(lane.state(), rank);
        if !matches!(state, RankState::Failed { .. }) {
            return None;
        }
        let mut bytes = [0; REASON_BYTES];
        lane.segment().view().copy_out(REASON, &mut bytes).ok()?;
        Reason::from_bytes(bytes).text()
    }

    fn announce(&mut self, state: RankState) {
        self.state = state;
        giving_up::announce(self.own(), state);
        for peer in &self.peers {
            // A peer that the system will not wake finds the state when its own limit ends.
            let _ = sleep::nudge(&self.lanes[peer.rank as usize]);
        }
    }

    fn lost_peers(&mut self, lost: &mut Vec<LostPeer>) {
        liveness::lost_peers(&self.peers, &self.lanes, lost);
    }
}

impl Drop for HostEngine {
    fn drop(&mut self) {
        // Nothing moves any more when the peers hear of the end.
        self.channels.stop();
        if self.state == RankState::Running {
            // A thread that panics has not left in good order.
            let state = if std::thread::panicking() {
                RankState::Failed { culprit: self.config.rank }
            } else {
                RankState::Closed
            };
            self.announce(state);
            // Peers know of no end of what they write when a thread panics.
            self.wait_for_writers(LAST_WRITES);
        }
    }
}

fn system(error: MemoryError) -> EngineError {
    match error {
        MemoryError::System { call, errno } => {
            EngineError::System { call, message: errno.to_string() }
        }
        other => EngineError::System { call: "shared memory", message: other.to_string() },
    }
}
