//! A collective under way: rounds of its program, several in flight.
//!
//! Rules, which the verifier of `stepccl-plan` relies on: acts of a round run in order; a signal
//! is raised only after the round before has raised the same one; a round starts only when every
//! rank has finished the round that used its slot before.

use std::collections::VecDeque;
use std::sync::Arc;

use stepccl_engine::{Address, Board, EngineError, Look, Operation, Scale, Submission, Token};
use stepccl_plan::{ReduceOp, Targets};

use crate::Call;
use crate::bound::{Bound, Direction};
use crate::called::Called;
use crate::context::{Advance, Context, Failure};
use crate::geometry::{FINISHED, STREAMING_BYTES};
use crate::prepared::{Act, Prepared, Spot};
use crate::rounds::Rounds;

/// One round under way.
#[derive(Debug)]
pub(crate) struct Round {
    index: u64,
    number: u64,
    slot: u64,
    at: usize,
    pending: Option<Token>,
}

/// What the rounds of a collective work on.
#[derive(Debug)]
struct Sides {
    call: Call,
    prepared: Arc<Prepared>,
    input: Bound,
    output: Bound,
    /// Number of the first round.
    first: u64,
}

/// What this rank told the others of its call.
#[derive(Debug)]
struct Posted {
    called: Called,
    number: u64,
    rung: bool,
    /// Every rank was seen to have called the same.
    agreed: bool,
}

/// A collective under way on one rank.
#[derive(Debug)]
pub(crate) struct CollectiveTask {
    sides: Sides,
    started: bool,
    posted: Option<Posted>,
    free_from: u64,
    next: u64,
    flight: VecDeque<Round>,
}

impl CollectiveTask {
    /// # Safety
    ///
    /// The memory of `call` must be valid, and untouched by others, until the task is done or
    /// `release` has returned.
    pub unsafe fn new(call: Call, prepared: Arc<Prepared>) -> Self {
        let (input, output) = (Bound::None, Bound::None);
        Self {
            sides: Sides { call, prepared, input, output, first: 0 },
            started: false,
            posted: None,
            free_from: 0,
            next: 0,
            flight: VecDeque::new(),
        }
    }

    /// What was called, and what it runs.
    pub fn about(&self) -> (&Call, &Prepared) {
        (&self.sides.call, &self.sides.prepared)
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), EngineError> {
        let Sides { call, prepared, input, output, first } = &mut self.sides;
        let block_bytes = call.block_bytes();
        (*first, self.free_from) = cx.rounds.begin(prepared);
        self.started = true;
        self.flight = std::mem::take(&mut cx.flight);
        let inputs = call.collective.input_blocks(cx.rank, cx.ranks);
        let outputs = call.collective.output_blocks(cx.rank, cx.ranks);
        // In place, the output was just read and is in the caches.
        let streaming = block_bytes.saturating_mul(outputs as usize) >= STREAMING_BYTES
            && call.input != call.output;
        let engine = cx.engine.as_mut();
        // SAFETY:
        // - `new` was promised that the memory stays valid until the task is released.
        unsafe {
            *input = Bound::register(&call.input, inputs, block_bytes, Direction::Input, engine)?;
            let direction = Direction::Output { streaming };
            *output = Bound::register(&call.output, outputs, block_bytes, direction, engine)?;
        }
        Ok(())
    }

    pub fn advance(&mut self, cx: &mut Context) -> Result<Advance, Failure> {
        if !self.started {
            if cx.posts.are_used() && self.posted.is_none() && !self.post(cx)? {
                return Ok(Advance::Idle);
            }
            self.start(cx)?;
        }
        let mut moved = self.admit(cx)?;
        // Signals before this place were raised by the round before.
        let mut raised = usize::MAX;
        for round in &mut self.flight {
            moved |= self.sides.run(round, raised, cx)?;
            raised = round.at;
        }
        moved |= self.retire(cx)?;
        if self.flight.is_empty() && self.next == self.sides.prepared.rounds {
            self.compare(cx)?;
            self.release(cx)?;
            cx.flight = std::mem::take(&mut self.flight);
            return Ok(Advance::Done);
        }
        if !moved {
            self.compare(cx)?;
        }
        Ok(if moved { Advance::Moved } else { Advance::Idle })
    }

    /// Tell the others what is called; false where there is no room yet.
    fn post(&mut self, cx: &mut Context) -> Result<bool, EngineError> {
        if !cx.has_room()? {
            return Ok(false);
        }
        let (called, number) = (Called::of(&self.sides.call), cx.posts.take());
        // SAFETY:
        // - There are no parts.
        unsafe { cx.engine.post(Board::Collective, number, called.0, &[])? };
        self.posted = Some(Posted { called, number, rung: false, agreed: false });
        Ok(true)
    }

    /// Compare with what the others called, as far as they have. Ranks that called something else
    /// may have moved other bytes than this one, so nothing is done before this.
    fn compare(&mut self, cx: &mut Context) -> Result<(), Failure> {
        let Some(posted) = self.posted.as_mut().filter(|p| !p.agreed) else { return Ok(()) };
        if !posted.rung {
            posted.rung = true;
            cx.engine.ring(Targets::All)?;
        }
        posted.agreed = true;
        for rank in (0..cx.ranks).filter(|r| *r != cx.rank) {
            match cx.engine.look(rank, Board::Collective, posted.number)? {
                Look::Here(words) if words != posted.called.0 => {
                    return Err(Failure::Calls { number: posted.number });
                }
                Look::Here(_) => cx.posts.saw(rank, posted.number),
                Look::Absent | Look::Past => posted.agreed = false,
            }
        }
        Ok(())
    }

    /// Start rounds as long as there are slots.
    fn admit(&mut self, cx: &mut Context) -> Result<bool, EngineError> {
        let Sides { prepared, first, .. } = &self.sides;
        let mut moved = false;
        while self.next < prepared.rounds && self.flight.len() < prepared.depth as usize {
            let (index, number) = (self.next, first + self.next);
            let needed = Rounds::needed(prepared, index, number, self.free_from);
            if let Some(wait) = cx.rounds.check(needed, cx.engine.as_ref())? {
                cx.waits.push(wait);
                break;
            }
            let slot = prepared.slot(index, number);
            self.flight.push_back(Round { index, number, slot, at: 0, pending: None });
            self.next += 1;
            moved = true;
        }
        Ok(moved)
    }

    /// Drop rounds that are through, and tell the others.
    fn retire(&mut self, cx: &mut Context) -> Result<bool, EngineError> {
        let prepared = &self.sides.prepared;
        let mut told = None;
        let mut moved = false;
        while let Some(round) = self.flight.front()
            && round.pending.is_none()
            && round.at == prepared.acts(round.index).len()
        {
            let finished = round.number + 1;
            if finished.is_multiple_of(prepared.finished_every) {
                told = Some(finished);
            }
            self.flight.pop_front();
            moved = true;
        }
        if let Some(finished) = told
            && cx.ranks > 1
        {
            cx.engine.signal(Targets::All, FINISHED, finished)?;
        }
        Ok(moved)
    }

    /// Give the caller's memory back. Fails while a channel still uses it.
    pub fn release(&mut self, cx: &mut Context) -> Result<(), EngineError> {
        self.sides.input.release(cx.engine.as_mut())?;
        self.sides.output.release(cx.engine.as_mut())
    }
}

impl Sides {
    /// Run acts of `round` as far as they go.
    fn run(&self, round: &mut Round, raised: usize, cx: &mut Context) -> Result<bool, EngineError> {
        let acts = self.prepared.acts(round.index);
        let mut moved = false;
        loop {
            if let Some(token) = round.pending {
                if !cx.finished(token)? {
                    return Ok(moved);
                }
                round.pending = None;
                round.at += 1;
                moved = true;
            }
            let Some(act) = acts.get(round.at) else { return Ok(moved) };
            let answer = match act {
                Act::Nothing => Submission::Done,
                Act::Wait { from, flag } => {
                    let (flag, value) = (cx.geometry.phase_flag(*flag), round.number + 1);
                    if cx.engine.flag(*from, flag)? < value {
                        cx.wait_for(*from, flag, value);
                        return Ok(moved);
                    }
                    cx.rounds.saw(*from, self.first);
                    Submission::Done
                }
                Act::Signal { flag, to } => {
                    if round.at >= raised {
                        return Ok(moved);
                    }
                    cx.engine.signal(*to, cx.geometry.phase_flag(*flag), round.number + 1)?;
                    Submission::Done
                }
                Act::Copy { src, dst, bytes } if self.scale(&[*src]).is_some() => {
                    let count = bytes / self.call.dtype.size();
                    self.reduce(round, &[*src], *dst, count, false, cx)?
                }
                Act::Copy { src, dst, bytes } => self.copy(round, *src, *dst, *bytes, cx)?,
                Act::Reduce { srcs, dst, count, last } => {
                    self.reduce(round, srcs, *dst, *count, *last, cx)?
                }
            };
            match answer {
                Submission::Done => round.at += 1,
                Submission::InProgress(token) => round.pending = Some(token),
                Submission::Full => return Ok(moved),
            }
            moved = true;
        }
    }

    fn copy(
        &self,
        round: &Round,
        src: Spot,
        dst: Spot,
        bytes: usize,
        cx: &mut Context,
    ) -> Result<Submission, EngineError> {
        // In place: the bytes are where they should be.
        if let (Some(from), Some(to)) = (self.pointer(src, round), self.pointer(dst, round))
            && from == to
        {
            return Ok(Submission::Done);
        }
        let (src, dst) = (self.address(src, round, cx)?, self.address(dst, round, cx)?);
        cx.submit(&Operation::Copy { src, dst, bytes: bytes as u64 })
    }

    fn reduce(
        &self,
        round: &Round,
        srcs: &[Spot],
        dst: Spot,
        count: usize,
        last: bool,
        cx: &mut Context,
    ) -> Result<Submission, EngineError> {
        let mut sources = std::mem::take(&mut cx.sources);
        sources.clear();
        for src in srcs {
            sources.push(self.address(*src, round, cx)?);
        }
        let dst = self.address(dst, round, cx)?;
        let divisor = if last && self.call.op == ReduceOp::Avg { cx.ranks } else { 1 };
        let scale = self.scale(srcs);
        let answer = cx.submit(&Operation::Reduce {
            srcs: &sources,
            dst,
            count: count as u64,
            dtype: self.call.dtype,
            op: self.call.op,
            divisor,
            scale,
        });
        cx.sources = sources;
        answer
    }

    /// Multiplies the rank's own input, where one of `srcs` is that and there is a factor.
    fn scale(&self, srcs: &[Spot]) -> Option<Scale> {
        let factor = self.call.factor()?;
        // What lies in staging or in the output was multiplied on the way there.
        let own = srcs.iter().position(|src| matches!(src, Spot::Input { .. }))?;
        Some(Scale { source: own as u32, factor })
    }

    fn address(&self, spot: Spot, round: &Round, cx: &Context) -> Result<Address, EngineError> {
        let done = round.index as usize * self.prepared.page_bytes;
        let block_bytes = self.call.block_bytes();
        match spot {
            Spot::Input { block, offset } => self.input.address(block, block_bytes, done + offset),
            Spot::Output { block, offset } => {
                self.output.address(block, block_bytes, done + offset)
            }
            Spot::Staging { rank, offset } => cx.staged(rank, round.slot + offset as u64),
        }
    }

    fn pointer(&self, spot: Spot, round: &Round) -> Option<*mut u8> {
        let done = round.index as usize * self.prepared.page_bytes;
        let (memory, block, offset) = match spot {
            Spot::Input { block, offset } => (&self.call.input, block, offset),
            Spot::Output { block, offset } => (&self.call.output, block, offset),
            Spot::Staging { .. } => return None,
        };
        let start = memory.block(block, self.call.block_bytes())?;
        Some(start.wrapping_add(done + offset))
    }
}
