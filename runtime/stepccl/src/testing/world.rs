//! What the made-up engines of all ranks share: memory, flags under way, channels.

use std::collections::{BTreeMap, HashMap};

use stepccl_engine::{
    Address, Completion, EngineError, LostPeer, Operation, RankState, RegionId, Scale, Submission,
    Token, UserMemory,
};
use stepccl_plan::{DType, ReduceOp, Targets};

use super::boards::Boards;
use super::integer::{combine, load, store, wrapped};
use super::manners::{Fault, Manners};
use super::random::Random;
use super::shadow::{Clock, Kind, Shadow, Touch};

/// First region of users; below is the staging of rank `id - 1`.
const FIRST_USER: u32 = 1 << 12;

#[derive(Debug)]
enum Move {
    Copy {
        src: Address,
        dst: Address,
        bytes: u64,
    },
    Reduce {
        srcs: Vec<Address>,
        dst: Address,
        count: u64,
        dtype: DType,
        op: ReduceOp,
        by: u32,
        scale: Option<Scale>,
    },
}

#[derive(Debug)]
struct Flight {
    rank: u32,
    token: Token,
    work: Move,
    fails: bool,
}

#[derive(Debug)]
struct News {
    to: u32,
    from: u32,
    flag: u32,
    value: u64,
    clock: Clock,
}

#[derive(Debug)]
struct Side {
    staging: Box<[u64]>,
    users: BTreeMap<u32, UserMemory>,
    next_region: u32,
    raised: HashMap<u32, u64>,
    /// Flags of others as this rank sees them.
    seen: HashMap<(u32, u32), (u64, Clock)>,
    done: Vec<(Token, Result<u64, EngineError>)>,
    state: RankState,
    dead: bool,
    ring_failed: bool,
    submissions: u64,
    signals: u64,
}

/// Everything outside of the executors.
#[derive(Debug)]
pub(super) struct World {
    pub manners: Manners,
    pub random: Random,
    pub shadow: Shadow,
    pub boards: Boards,
    sides: Vec<Side>,
    news: Vec<News>,
    flights: Vec<Flight>,
    next_token: u64,
    flags: u32,
    /// Rank, which of its submissions or signals, and what happens then.
    fault: Option<(u32, u64, Fault)>,
}

impl World {
    pub fn new(ranks: u32, staging_bytes: usize, flags: u32, manners: Manners, seed: u64) -> Self {
        let side = || Side {
            staging: vec![0xa5a5_a5a5_a5a5_a5a5; staging_bytes / 8].into(),
            users: BTreeMap::new(),
            next_region: FIRST_USER,
            raised: HashMap::new(),
            seen: HashMap::new(),
            done: Vec::new(),
            state: RankState::Running,
            dead: false,
            ring_failed: false,
            submissions: 0,
            signals: 0,
        };
        Self {
            manners,
            random: Random::new(seed),
            shadow: Shadow::new(ranks),
            boards: Boards::default(),
            sides: (0..ranks).map(|_| side()).collect(),
            news: Vec::new(),
            flights: Vec::new(),
            next_token: 1,
            flags,
            fault: None,
        }
    }

    fn side(&mut self, rank: u32) -> &mut Side {
        &mut self.sides[rank as usize]
    }

    /// Let `fault` happen at the `nth` submission (or signal) of `rank`, from 0.
    pub fn plan_fault(&mut self, rank: u32, nth: u64, fault: Fault) {
        self.fault = Some((rank, nth, fault));
    }

    /// Whether the system refuses to let `rank` wait.
    pub fn refuses_park(&self, rank: u32) -> bool {
        matches!(self.fault, Some((r, _, Fault::Park)) if r == rank)
    }

    fn faults(&mut self, rank: u32, nth: u64, which: &[Fault]) -> Option<Fault> {
        let (r, n, fault) = self.fault?;
        (r == rank && n == nth && which.contains(&fault)).then_some(fault)
    }

    pub fn kill(&mut self, rank: u32) {
        self.side(rank).dead = true;
    }

    pub fn state(&self, rank: u32) -> RankState {
        self.sides[rank as usize].state
    }

    pub fn announce(&mut self, rank: u32, state: RankState) {
        self.side(rank).state = state;
    }

    pub fn lost(&self, rank: u32, lost: &mut Vec<LostPeer>) {
        for (peer, side) in (0..).zip(&self.sides) {
            if peer != rank && (side.dead || side.state != RankState::Running) {
                lost.push(LostPeer { rank: peer, pid: 1000 + peer, state: side.state });
            }
        }
    }

    pub fn staging(rank: u32) -> Address {
        Address::start_of(RegionId::new(rank + 1).expect("few ranks"))
    }

    /// Regions of users that are registered.
    pub fn regions(&self) -> usize {
        self.sides.iter().map(|s| s.users.len()).sum()
    }

    /// The same of one rank.
    pub fn regions_of(&self, rank: u32) -> usize {
        self.sides[rank as usize].users.len()
    }

    pub fn register(&mut self, rank: u32, memory: UserMemory) -> Result<RegionId, EngineError> {
        let limit = self.manners.regions;
        let side = self.side(rank);
        if side.users.len() >= limit {
            return Err(EngineError::TooManyRegions { limit: limit as u32 });
        }
        assert!(!memory.base.is_null() || memory.bytes == 0, "{memory:?}");
        let id = side.next_region;
        side.next_region += 1;
        side.users.insert(id, memory);
        Ok(RegionId::new(id).expect("not that many regions"))
    }

    pub fn unregister(&mut self, rank: u32, region: RegionId) -> Result<(), EngineError> {
        let used = |a: &Address| a.region() == region.get();
        if self.flights.iter().any(|f| {
            f.rank == rank
                && match &f.work {
                    Move::Copy { src, dst, .. } => used(src) || used(dst),
                    Move::Reduce { srcs, dst, .. } => srcs.iter().any(used) || used(dst),
                }
        }) {
            return Err(EngineError::RegionBusy { region: region.get() });
        }
        let unknown = EngineError::UnknownRegion { address: Address::start_of(region) };
        self.side(rank).users.remove(&region.get()).map(drop).ok_or(unknown)
    }

    /// First byte, and the staging it is in.
    fn resolve(
        &mut self,
        rank: u32,
        address: Address,
        bytes: u64,
        kind: Kind,
    ) -> Result<(*mut u8, Option<Touch>), EngineError> {
        let (id, offset) = (address.region(), address.offset());
        let (base, region_bytes, owner) = if id >= FIRST_USER {
            let memory = self
                .side(rank)
                .users
                .get(&id)
                .copied()
                .ok_or(EngineError::UnknownRegion { address })?;
            if kind == Kind::Write && !memory.writable {
                return Err(EngineError::ReadOnly { address });
            }
            (memory.base, memory.bytes, None)
        } else if id >= 1 && id as usize <= self.sides.len() {
            let staging = &mut self.side(id - 1).staging;
            (staging.as_mut_ptr().cast(), staging.len() as u64 * 8, Some(id - 1))
        } else {
            return Err(EngineError::UnknownRegion { address });
        };
        if offset + bytes > region_bytes {
            return Err(EngineError::OutOfBounds { address, bytes, region_bytes });
        }
        let touch = owner.map(|owner| Touch { kind, owner, bytes: offset..offset + bytes });
        Ok((base.wrapping_add(offset as usize), touch))
    }

    pub fn submit(
        &mut self,
        rank: u32,
        operation: &Operation<'_>,
    ) -> Result<Submission, EngineError> {
        let nth = self.side(rank).submissions;
        let (work, ranges) = match *operation {
            Operation::Copy { src, dst, bytes } => (
                Move::Copy { src, dst, bytes },
                vec![(src, bytes, Kind::Read), (dst, bytes, Kind::Write)],
            ),
            Operation::Reduce { srcs, dst, count, dtype, op, divisor: by, scale } => {
                let bytes = count * dtype.size() as u64;
                let mut ranges: Vec<_> = srcs.iter().map(|s| (*s, bytes, Kind::Read)).collect();
                ranges.push((dst, bytes, Kind::Write));
                let srcs = srcs.to_vec();
                (Move::Reduce { srcs, dst, count, dtype, op, by, scale }, ranges)
            }
        };
        let mut touches = Vec::new();
        for (address, bytes, kind) in ranges {
            assert!(bytes > 0, "rank {rank}: an operation that moves nothing");
            touches.extend(self.resolve(rank, address, bytes, kind)?.1);
        }
        let (full, channel) = (self.manners.full, self.manners.channel);
        if self.random.percent(full) {
            return Ok(Submission::Full);
        }
        self.side(rank).submissions += 1;
        let fault = self.faults(rank, nth, &[Fault::Submit, Fault::Completion, Fault::Ring]);
        if fault == Some(Fault::Submit) {
            return Err(EngineError::Failed { errno: 5 });
        }
        if fault.is_some() || self.random.percent(channel) {
            let token = Token(self.next_token);
            self.next_token += 1;
            self.shadow.open(rank, token, touches);
            self.side(rank).ring_failed |= fault == Some(Fault::Ring);
            let fails = fault == Some(Fault::Completion);
            self.flights.push(Flight { rank, token, work, fails });
            return Ok(Submission::InProgress(token));
        }
        self.shadow.touch(rank, &touches);
        self.execute(rank, &work)?;
        Ok(Submission::Done)
    }

    fn execute(&mut self, rank: u32, work: &Move) -> Result<u64, EngineError> {
        match work {
            Move::Copy { src, dst, bytes } => {
                let (from, _) = self.resolve(rank, *src, *bytes, Kind::Read)?;
                let (to, _) = self.resolve(rank, *dst, *bytes, Kind::Write)?;
                // SAFETY:
                // - `resolve` checked both ranges against registered memory, which its owner keeps
                //   alive and untouched; `copy` allows overlap.
                unsafe { std::ptr::copy(from, to, *bytes as usize) };
                Ok(*bytes)
            }
            Move::Reduce { srcs, dst, count, dtype, op, by, scale } => {
                let bytes = count * dtype.size() as u64;
                let mut sources = Vec::new();
                for src in srcs {
                    sources.push(self.resolve(rank, *src, bytes, Kind::Read)?.0);
                }
                let (to, _) = self.resolve(rank, *dst, bytes, Kind::Write)?;
                for i in 0..*count as usize {
                    let at = i * dtype.size();
                    // SAFETY:
                    // - `resolve` checked `count` elements of all of them, as above.
                    unsafe {
                        let values = sources.iter().enumerate().map(|(source, s)| {
                            let value = load(s.wrapping_add(at), *dtype);
                            match scale {
                                Some(scale) if scale.source as usize == source => {
                                    wrapped(value * scale.factor as i128, *dtype)
                                }
                                _ => value,
                            }
                        });
                        let value = combine(values, *op, *dtype);
                        store(to.wrapping_add(at), *dtype, value / i128::from(*by));
                    }
                }
                Ok(bytes)
            }
        }
    }

    pub fn reap(
        &mut self,
        rank: u32,
        completions: &mut Vec<Completion>,
    ) -> Result<(), EngineError> {
        if self.side(rank).ring_failed {
            let detail = "the tail is behind the head".to_owned();
            return Err(EngineError::Protocol { what: "completion ring", detail });
        }
        // Channels go on by themselves.
        if !self.manners.stuck
            && self.random.percent(2)
            && let Some(at) = self.flights.iter().position(|f| f.rank == rank)
        {
            self.land(at);
        }
        let mut done = std::mem::take(&mut self.side(rank).done);
        while !done.is_empty() {
            let (token, result) = done.swap_remove(self.random.below(done.len()));
            self.shadow.close(rank, token);
            completions.push(Completion { token, result });
        }
        Ok(())
    }

    pub fn signal(
        &mut self,
        rank: u32,
        to: Targets,
        flag: u32,
        value: u64,
    ) -> Result<(), EngineError> {
        assert!(flag < self.flags, "rank {rank}: flag {flag} of {}", self.flags);
        let nth = self.side(rank).signals;
        self.side(rank).signals += 1;
        if self.faults(rank, nth, &[Fault::Signal]).is_some() {
            return Err(EngineError::System { call: "futex", message: "made up".to_owned() });
        }
        let before = self.side(rank).raised.insert(flag, value).unwrap_or(0);
        assert!(value > before, "rank {rank}: flag {flag} goes from {before} to {value}");
        let clock = self.shadow.tell(rank);
        let ranks = self.sides.len() as u32;
        let targets = match to {
            Targets::One(one) => one..one + 1,
            Targets::All => 0..ranks,
        };
        for to in targets.filter(|to| *to != rank) {
            assert!(to < ranks, "rank {rank} signals rank {to} of {ranks}");
            let clock = clock.clone();
            self.news.push(News { to, from: rank, flag, value, clock });
        }
        Ok(())
    }

    pub fn flag(&mut self, rank: u32, from: u32, flag: u32) -> Result<u64, EngineError> {
        if flag >= self.flags || from as usize >= self.sides.len() {
            return Err(EngineError::UnknownFlag { rank: from, flag, flags: self.flags });
        }
        if from == rank {
            return Ok(self.side(rank).raised.get(&flag).copied().unwrap_or(0));
        }
        let Some((value, clock)) = self.sides[rank as usize].seen.get(&(from, flag)) else {
            return Ok(0);
        };
        self.shadow.hear(rank, clock);
        Ok(*value)
    }

    /// Whether a flag or a channel is under way.
    pub fn is_busy(&self) -> bool {
        !self.news.is_empty()
            || self.boards.is_busy()
            || !self.flights.is_empty()
            || self.sides.iter().any(|s| !s.done.is_empty())
    }

    /// Something happens outside of the ranks: a flag arrives, or a channel ends an operation.
    pub fn tick(&mut self) {
        if self.manners.stuck {
            return;
        }
        if !self.news.is_empty() && self.random.percent(70) {
            let picked = &self.news[self.random.below(self.news.len())];
            let key = (picked.to, picked.from, picked.flag);
            // Values of one flag arrive in order; that is all that is in order.
            let first = self.news.iter().position(|n| (n.to, n.from, n.flag) == key);
            self.deliver(first.expect("it was picked"));
        }
        if self.boards.is_busy() && self.random.percent(60) {
            let at = self.random.below(self.boards.len());
            self.boards.deliver(at);
        }
        if !self.flights.is_empty() && self.random.percent(50) {
            let at = self.random.below(self.flights.len());
            self.land(at);
        }
    }

    /// Everything under way arrives.
    pub fn calm(&mut self) {
        self.manners = Manners { stuck: false, full: 0, ..self.manners };
        while !self.news.is_empty() {
            self.deliver(0);
        }
        while self.boards.is_busy() {
            self.boards.deliver(0);
        }
        while !self.flights.is_empty() {
            self.land(0);
        }
    }

    fn deliver(&mut self, at: usize) {
        let News { to, from, flag, value, clock } = self.news.remove(at);
        self.side(to).seen.insert((from, flag), (value, clock));
    }

    fn land(&mut self, at: usize) {
        let Flight { rank, token, work, fails } = self.flights.swap_remove(at);
        let result =
            if fails { Err(EngineError::Failed { errno: 5 }) } else { self.execute(rank, &work) };
        self.side(rank).done.push((token, result));
    }
}
