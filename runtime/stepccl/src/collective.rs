//! A collective under way: rounds of its program, several in flight.
//!
//! Rules, which the verifier of `stepccl-plan` relies on: acts of a round run in order; a signal
//! is raised only after the round before has raised the same one; a round starts only when every
//! rank has finished the round that used its slot before.

use std::collections::VecDeque;
use std::sync::Arc;

use stepccl_engine::{Address, EngineError, Operation, Submission, Token};
use stepccl_plan::{ReduceOp, Targets};

use crate::Call;
use crate::bound::{Bound, Direction};
use crate::context::{Advance, Context, Failure};
use crate::geometry::{FINISHED, STREAMING_BYTES};
use crate::prepared::{Act, Prepared, Spot};
use crate::rounds::Rounds;

#[derive(Debug)]
struct Round {
    index: u64,
    number: u64,
    slot: u64,
    at: usize,
    pending: Option<Token>,
}

/// A collective under way on one rank.
#[derive(Debug)]
pub(crate) struct CollectiveTask {
    call: Call,
    prepared: Arc<Prepared>,
    input: Bound,
    output: Bound,
    started: bool,
    first: u64,
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
        Self {
            call,
            prepared,
            input: Bound::None,
            output: Bound::None,
            started: false,
            first: 0,
            free_from: 0,
            next: 0,
            flight: VecDeque::new(),
        }
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), EngineError> {
        let collective = self.call.collective;
        let block_bytes = self.call.block_bytes();
        (self.first, self.free_from) = cx.rounds.begin(&self.prepared);
        self.started = true;
        let inputs = collective.input_blocks(cx.rank, cx.ranks);
        let outputs = collective.output_blocks(cx.rank, cx.ranks);
        // In place, the output was just read and is in the caches.
        let streaming = block_bytes.saturating_mul(outputs as usize) >= STREAMING_BYTES
            && self.call.input != self.call.output;
        let engine = cx.engine.as_mut();
        // SAFETY:
        // - `new` was promised that the memory stays valid until the task is released.
        unsafe {
            let (input, output) = (&self.call.input, &self.call.output);
            self.input = Bound::register(input, inputs, block_bytes, Direction::Input, engine)?;
            let direction = Direction::Output { streaming };
            self.output = Bound::register(output, outputs, block_bytes, direction, engine)?;
        }
        Ok(())
    }

    pub fn advance(&mut self, cx: &mut Context) -> Result<Advance, Failure> {
        if !self.started {
            self.start(cx)?;
        }
        let mut moved = self.admit(cx)?;
        let prepared = Arc::clone(&self.prepared);
        // Signals before this place were raised by the round before.
        let mut raised = usize::MAX;
        for i in 0..self.flight.len() {
            moved |= self.run(i, raised, &prepared, cx)?;
            raised = self.flight[i].at;
        }
        moved |= self.retire(&prepared, cx)?;
        if self.flight.is_empty() && self.next == prepared.rounds {
            self.release(cx)?;
            return Ok(Advance::Done);
        }
        Ok(if moved { Advance::Moved } else { Advance::Idle })
    }

    /// Start rounds as long as there are slots.
    fn admit(&mut self, cx: &mut Context) -> Result<bool, EngineError> {
        let mut moved = false;
        while self.next < self.prepared.rounds && self.flight.len() < self.prepared.depth as usize {
            let (index, number) = (self.next, self.first + self.next);
            let needed = Rounds::needed(&self.prepared, index, number, self.free_from);
            if let Some(wait) = cx.rounds.check(needed, cx.engine.as_ref())? {
                cx.waits.push(wait);
                break;
            }
            let slot = self.prepared.slot(index, number);
            self.flight.push_back(Round { index, number, slot, at: 0, pending: None });
            self.next += 1;
            moved = true;
        }
        Ok(moved)
    }

    /// Run acts of round `i` of the flight as far as they go.
    fn run(
        &mut self,
        i: usize,
        raised: usize,
        prepared: &Prepared,
        cx: &mut Context,
    ) -> Result<bool, EngineError> {
        let acts = prepared.acts(self.flight[i].index);
        let mut moved = false;
        loop {
            let round = &mut self.flight[i];
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
                Act::Copy { src, dst, bytes } => self.copy(i, *src, *dst, *bytes, cx)?,
                Act::Reduce { srcs, dst, count, last } => {
                    self.reduce(i, srcs, *dst, *count, *last, cx)?
                }
            };
            match answer {
                Submission::Done => self.flight[i].at += 1,
                Submission::InProgress(token) => self.flight[i].pending = Some(token),
                Submission::Full => return Ok(moved),
            }
            moved = true;
        }
    }

    fn copy(
        &self,
        i: usize,
        src: Spot,
        dst: Spot,
        bytes: usize,
        cx: &mut Context,
    ) -> Result<Submission, EngineError> {
        let round = &self.flight[i];
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
        i: usize,
        srcs: &[Spot],
        dst: Spot,
        count: usize,
        last: bool,
        cx: &mut Context,
    ) -> Result<Submission, EngineError> {
        let round = &self.flight[i];
        let mut sources = std::mem::take(&mut cx.sources);
        sources.clear();
        for src in srcs {
            sources.push(self.address(*src, round, cx)?);
        }
        let dst = self.address(dst, round, cx)?;
        let divisor = if last && self.call.op == ReduceOp::Avg { cx.ranks } else { 1 };
        let answer = cx.submit(&Operation::Reduce {
            srcs: &sources,
            dst,
            count: count as u64,
            dtype: self.call.dtype,
            op: self.call.op,
            divisor,
        });
        cx.sources = sources;
        answer
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

    /// Drop rounds that are through, and tell the others.
    fn retire(&mut self, prepared: &Prepared, cx: &mut Context) -> Result<bool, EngineError> {
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
        self.input.release(cx.engine.as_mut())?;
        self.output.release(cx.engine.as_mut())
    }
}
