//! Operations that need another node, from their submission to their end.

use stepccl_engine::{Address, Completion, Engine, EngineError, Operation, Submission, Token};

use stepccl_engine_host::HostEngine;

use crate::area::Area;
use crate::engine::TcpEngine;
use crate::frame::Frame;
use crate::job::{Job, Pieces, Side, Stage, Sum, Work, piece_bytes};
use crate::shared::Shared;
use crate::transfers::{Started, Way};

/// Most sources of one reduce.
const MAX_SOURCES: usize = 4096;

/// What came of starting a transfer.
enum Start {
    /// It is under way.
    UnderWay,
    /// The bytes are there already.
    Done,
    /// There is no room now.
    Full,
}

/// What came of letting a job go on.
enum Next {
    /// It waits for transfers, or for room.
    Waiting,
    Stalled,
    Done,
}

impl TcpEngine {
    /// A copy of which one side, or both, is another node's.
    pub(crate) fn copy(
        &mut self,
        src: Address,
        dst: Address,
        bytes: u64,
    ) -> Result<Submission, EngineError> {
        let (from, to) = (self.side(src, bytes)?, self.side(dst, bytes)?);
        let (peer, offset, way, local) = match (from, to) {
            (Side::Remote { peer, offset }, Side::Local(local)) => {
                (peer, offset, Way::Fetch, local)
            }
            (Side::Local(local), Side::Remote { peer, offset }) => {
                (peer, offset, Way::Store, local)
            }
            (Side::Remote { peer: a, offset: x }, Side::Remote { peer: b, offset: y })
                if a == b && x.abs_diff(y) < bytes =>
            {
                return Err(EngineError::Overlap { src, dst, bytes });
            }
            _ => return self.start_pieces(vec![from], to, None, bytes),
        };
        let base = self.host.pin(local, bytes, way == Way::Fetch)?;
        if bytes == 0 {
            self.host.unpin(local);
            self.meter.inline_operations.add(1);
            return Ok(Submission::Done);
        }
        // SAFETY:
        // - The region is pinned until the job has ended, so it stays valid; the caller of
        //   `register` promised that nothing aliases what an operation in progress touches.
        let memory = unsafe { Area::new(base, bytes) };
        let job = self.next_job;
        match self.transfer(peer, way, memory, offset, job) {
            Ok(Start::UnderWay) => {
                let pinned = vec![local];
                let (outstanding, error, work) = (1, None, Work::Transfer);
                self.keep(Job { bytes, pinned, outstanding, error, work });
                Ok(Submission::InProgress(Token(job)))
            }
            answer => {
                self.host.unpin(local);
                match answer? {
                    Start::Full => {
                        self.meter.full.add(1);
                        Ok(Submission::Full)
                    }
                    _ => {
                        self.meter.copied_bytes.add(bytes);
                        self.meter.inline_operations.add(1);
                        Ok(Submission::Done)
                    }
                }
            }
        }
    }

    /// A reduce of which some side is another node's.
    pub(crate) fn reduce(
        &mut self,
        srcs: &[Address],
        dst: Address,
        count: u64,
        sum: Sum,
    ) -> Result<Submission, EngineError> {
        HostEngine::check_combination(sum.dtype, sum.op, sum.scale.is_some())?;
        if srcs.is_empty() || srcs.len() > MAX_SOURCES {
            let limit = MAX_SOURCES as u32;
            return Err(EngineError::BadSources { sources: srcs.len(), limit });
        }
        // A count past 2^64 bytes is out of any bounds.
        let bytes = count.saturating_mul(sum.dtype.size() as u64);
        let to = self.side(dst, bytes)?;
        let mut from = Vec::with_capacity(srcs.len());
        for src in srcs {
            let side = self.side(*src, bytes)?;
            if let (Side::Remote { peer: a, offset: x }, Side::Remote { peer: b, offset: y }) =
                (side, to)
                && a == b
                && x != y
                && x.abs_diff(y) < bytes
            {
                return Err(EngineError::Overlap { src: *src, dst, bytes });
            }
            from.push(side);
        }
        self.start_pieces(from, to, Some(sum), bytes)
    }

    /// Let jobs go on whose transfers have ended, or that wait for room.
    pub(crate) fn advance_jobs(&mut self) {
        let mut ready = std::mem::take(&mut self.stalled);
        for ended in self.shared.take_ended() {
            let Some(job) = self.jobs.get_mut(&ended.job) else { continue };
            job.outstanding -= 1;
            job.error = job.error.take().or(ended.error);
            if job.outstanding == 0 && !ready.contains(&ended.job) {
                ready.push(ended.job);
            }
        }
        for token in ready {
            let Some(mut job) = self.jobs.remove(&token) else { continue };
            match self.go_on(token, &mut job) {
                Next::Waiting => drop(self.jobs.insert(token, job)),
                Next::Stalled => {
                    self.jobs.insert(token, job);
                    self.stalled.push(token);
                }
                Next::Done => {
                    let result = self.finish(job);
                    self.completions.push(Completion { token: Token(token), result });
                }
            }
        }
    }

    /// Where an address is, with `bytes` bytes behind it where it is a peer's.
    fn side(&self, address: Address, bytes: u64) -> Result<Side, EngineError> {
        let Some(peer) = self.peer_of(address) else { return Ok(Side::Local(address)) };
        let region_bytes = self.shared.limits.staging_bytes;
        let offset = address.offset();
        if bytes > region_bytes || offset > region_bytes - bytes {
            return Err(EngineError::OutOfBounds { address, bytes, region_bytes });
        }
        Ok(Side::Remote { peer, offset })
    }

    fn start_pieces(
        &mut self,
        srcs: Vec<Side>,
        dst: Side,
        sum: Option<Sum>,
        total: u64,
    ) -> Result<Submission, EngineError> {
        let Some(slab) = self.scratch.take(&mut self.host)? else {
            self.meter.full.add(1);
            return Ok(Submission::Full);
        };
        let remote = srcs.iter().filter(|src| src.is_remote()).count();
        let result = usize::from(sum.is_some() && dst.is_remote());
        let mut job = Job {
            bytes: total,
            pinned: Vec::new(),
            outstanding: 0,
            error: None,
            work: Work::Transfer,
        };
        let locals = srcs.iter().map(|src| (*src, false)).chain([(dst, true)]);
        for (side, writable) in locals {
            if let Side::Local(address) = side
                && let Err(error) = self.host.pin(address, total, writable).map(|_| {
                    job.pinned.push(address);
                })
            {
                self.scratch.put(slab);
                job.pinned.iter().for_each(|address| self.host.unpin(*address));
                return Err(error);
            }
        }
        let piece = piece_bytes((remote + result).max(1));
        let stage = Stage::Fetch { next: 0 };
        job.work = Work::Pieces(Pieces { srcs, dst, sum, slab, total, at: 0, piece, stage });
        let token = self.next_job;
        match self.go_on(token, &mut job) {
            Next::Done => {
                self.next_job += 1;
                self.finish(job).map(|_| Submission::Done)
            }
            next => {
                if matches!(next, Next::Stalled) {
                    self.stalled.push(token);
                }
                self.keep(job);
                Ok(Submission::InProgress(Token(token)))
            }
        }
    }

    /// Keep a job under the next number.
    fn keep(&mut self, job: Job) {
        self.jobs.insert(self.next_job, job);
        self.next_job += 1;
    }

    /// Give back what a job used; its bytes, or what went wrong.
    fn finish(&mut self, job: Job) -> Result<u64, EngineError> {
        job.pinned.iter().for_each(|address| self.host.unpin(*address));
        let mut copied = true;
        if let Work::Pieces(pieces) = job.work {
            self.scratch.put(pieces.slab);
            // The host engine counted what it added.
            copied = pieces.sum.is_none();
        }
        if let Some(error) = job.error {
            return Err(error);
        }
        if copied {
            self.meter.copied_bytes.add(job.bytes);
            self.meter.channel_operations.add(1);
        }
        Ok(job.bytes)
    }

    /// Let a job go on as far as it goes.
    fn go_on(&mut self, token: u64, job: &mut Job) -> Next {
        loop {
            if job.error.is_some() {
                // What is under way still uses the memory.
                return if job.outstanding == 0 { Next::Done } else { Next::Waiting };
            }
            let Work::Pieces(pieces) = &mut job.work else { return Next::Done };
            if pieces.at == pieces.total && job.outstanding == 0 {
                return Next::Done;
            }
            match self.piece(token, pieces, &mut job.outstanding) {
                Ok(Next::Done) => {}
                Ok(next) => return next,
                Err(error) => job.error = Some(error),
            }
        }
    }

    /// Do what can be done of the present piece. `Done` where a stage is over.
    fn piece(
        &mut self,
        token: u64,
        pieces: &mut Pieces,
        outstanding: &mut usize,
    ) -> Result<Next, EngineError> {
        let now = pieces.now();
        match pieces.stage {
            Stage::Fetch { next } if next < pieces.srcs.len() => {
                if let Side::Remote { peer, offset } = pieces.srcs[next] {
                    let (_, area) = self.scratch.part(pieces.slab, pieces.slot(next), now)?;
                    match self.transfer(peer, Way::Fetch, area, offset + pieces.at, token)? {
                        Start::UnderWay => *outstanding += 1,
                        Start::Done => {}
                        Start::Full => return Ok(Next::Stalled),
                    }
                }
                pieces.stage = Stage::Fetch { next: next + 1 };
            }
            _ if *outstanding > 0 => return Ok(Next::Waiting),
            Stage::Fetch { .. } => {
                self.add_up(pieces, now)?;
                if pieces.dst.is_remote() {
                    pieces.stage = Stage::Store { asked: false };
                } else {
                    pieces.at += now;
                    pieces.stage = Stage::Fetch { next: 0 };
                }
            }
            Stage::Store { asked: false } => {
                let Side::Remote { peer, offset } = pieces.dst else { return Ok(Next::Done) };
                let (_, area) = self.scratch.part(pieces.slab, pieces.result_slot(), now)?;
                match self.transfer(peer, Way::Store, area, offset + pieces.at, token)? {
                    Start::UnderWay => *outstanding += 1,
                    Start::Done => {}
                    Start::Full => return Ok(Next::Stalled),
                }
                pieces.stage = Stage::Store { asked: true };
            }
            Stage::Store { asked: true } => {
                pieces.at += now;
                pieces.stage = Stage::Fetch { next: 0 };
            }
        }
        Ok(Next::Done)
    }

    /// Combine the sources of the present piece, all of which are here.
    fn add_up(&mut self, pieces: &Pieces, now: u64) -> Result<(), EngineError> {
        let Some(Sum { dtype, op, divisor, scale }) = pieces.sum else { return Ok(()) };
        let mut srcs = Vec::with_capacity(pieces.srcs.len());
        for (index, src) in pieces.srcs.iter().enumerate() {
            srcs.push(match src {
                Side::Local(address) => address.checked_add(pieces.at)?,
                Side::Remote { .. } => self.scratch.part(pieces.slab, pieces.slot(index), now)?.0,
            });
        }
        let dst = match pieces.dst {
            Side::Local(address) => address.checked_add(pieces.at)?,
            Side::Remote { .. } => self.scratch.part(pieces.slab, pieces.result_slot(), now)?.0,
        };
        let count = now / dtype.size() as u64;
        let sum = Operation::Reduce { srcs: &srcs, dst, count, dtype, op, divisor, scale };
        // A reduce is done when the host engine has submitted it.
        self.host.submit(&sum).map(|_| ())
    }

    /// Start a transfer between `memory` and the staging of a peer.
    fn transfer(
        &self,
        peer: usize,
        way: Way,
        memory: Area,
        offset: u64,
        job: u64,
    ) -> Result<Start, EngineError> {
        let peer = &self.shared.peers[peer];
        if memory.bytes() == 0 {
            return Ok(Start::Done);
        }
        let mut outbox = peer.outbox();
        if outbox.farewell {
            drop(outbox);
            let will = peer.will();
            let start = offset as usize;
            let left = will.as_ref().filter(|_| way == Way::Fetch);
            let bytes = left.and_then(|will| will.get(start..start + memory.bytes() as usize));
            return match bytes {
                Some(bytes) => {
                    memory.write(bytes);
                    Ok(Start::Done)
                }
                None => Err(Shared::lost(peer)),
            };
        }
        let id = match peer.transfers().start(way, memory, job) {
            Started::Id(id) => id,
            Started::Full => return Ok(Start::Full),
            Started::Closed => return Err(Shared::lost(peer)),
        };
        match way {
            Way::Fetch => outbox.frame(Frame::Read { id, offset, bytes: memory.bytes() }),
            Way::Store => outbox.write(id, offset, memory),
        }
        if !outbox.blocked {
            peer.flush(&mut outbox, &self.shared.epoll, crate::frame::CHUNK_BYTES);
        }
        Ok(Start::UnderWay)
    }
}
