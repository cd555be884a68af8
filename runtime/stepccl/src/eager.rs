//! A short collective: every rank posts its input along with what it called, and takes what it
//! needs from the posts of the others.

use stepccl_engine::{Board, Combination, EngineError, Look, Part, PartMut};
use stepccl_plan::{Collective, ReduceOp, Targets};

use crate::Call;
use crate::called::Called;
use crate::context::{Advance, Context, Failure};

/// Looks at a peer's post before sleepers are woken: the order of a post and of the look at who
/// sleeps costs a wait for the post to arrive, which is nothing after that.
const LOOKS_BEFORE_RING: u32 = 32;

/// A short collective under way on one rank.
#[derive(Debug)]
pub(crate) struct EagerTask {
    call: Call,
    called: Called,
    /// Number of its post, once that is made.
    number: Option<u64>,
    rung: bool,
    /// Posts of ranks before this one have been seen, where they are needed.
    at: u32,
}

/// Bytes of data that a rank posts at most.
pub(crate) const fn posted_bytes(collective: Collective, block_bytes: usize, ranks: u32) -> usize {
    match collective {
        Collective::Barrier => 0,
        _ if collective.splits_input() => block_bytes.saturating_mul(ranks as usize),
        _ => block_bytes,
    }
}

impl EagerTask {
    /// # Safety
    ///
    /// The memory of `call` must be valid, and untouched by others, until the task is done or
    /// dropped.
    pub unsafe fn new(call: Call) -> Self {
        Self { called: Called::of(&call), call, number: None, rung: false, at: 0 }
    }

    /// What was called.
    pub const fn called(&self) -> Called {
        self.called
    }

    pub fn advance(&mut self, cx: &mut Context) -> Result<Advance, Failure> {
        let number = match self.number {
            Some(number) => number,
            None if cx.has_room()? => self.post(cx)?,
            None => return Ok(Advance::Idle),
        };
        while self.at < cx.ranks {
            if self.call.collective.reads(cx.rank, self.at)
                && !self.is_there(self.at, number, cx)?
            {
                self.note_missing(number, cx)?;
                return Ok(Advance::Idle);
            }
            self.at += 1;
        }
        self.deliver(number, cx)?;
        self.ring(cx)?;
        Ok(Advance::Done)
    }

    fn post(&mut self, cx: &mut Context) -> Result<u64, EngineError> {
        let number = cx.posts.take();
        let bytes = self.call.block_bytes();
        let blocks = self.call.collective.input_blocks(cx.rank, cx.ranks);
        let mut parts = std::mem::take(&mut cx.parts);
        parts.clear();
        parts.extend(
            self.call.input.ranges_mut(blocks, bytes).map(|(base, bytes)| Part { base, bytes }),
        );
        // SAFETY:
        // - `new` was promised that the input is valid; the parts are its blocks.
        let posted = unsafe { cx.engine.post(Board::Collective, number, self.called.0, &parts) };
        cx.parts = parts;
        posted?;
        self.number = Some(number);
        Ok(number)
    }

    fn is_there(&mut self, rank: u32, number: u64, cx: &mut Context) -> Result<bool, Failure> {
        let mut looks = 0;
        loop {
            match cx.engine.look(rank, Board::Collective, number)? {
                Look::Here(words) if words == self.called.0 => {
                    cx.posts.saw(rank, number);
                    return Ok(true);
                }
                Look::Here(_) => return Err(Failure::Calls { number }),
                Look::Past => return Err(past(rank, number).into()),
                Look::Absent if self.rung => return Ok(false),
                Look::Absent if looks < LOOKS_BEFORE_RING => {
                    looks += 1;
                    std::hint::spin_loop();
                }
                Look::Absent => self.ring(cx)?,
            }
        }
    }

    /// Note all posts that are waited for, so that an error names every rank that is missing.
    fn note_missing(&self, number: u64, cx: &mut Context) -> Result<(), EngineError> {
        for rank in self.at..cx.ranks {
            if self.call.collective.reads(cx.rank, rank)
                && cx.engine.look(rank, Board::Collective, number)? == Look::Absent
            {
                cx.wait_for_post(rank, number);
            }
        }
        Ok(())
    }

    /// Wake who sleeps and waits for the post.
    fn ring(&mut self, cx: &mut Context) -> Result<(), EngineError> {
        if self.rung {
            return Ok(());
        }
        self.rung = true;
        cx.engine.ring(Targets::All)
    }

    /// Take from the posts what this rank gets.
    fn deliver(&self, number: u64, cx: &mut Context) -> Result<(), EngineError> {
        let Call { collective, dtype, op, count, input, output, .. } = &self.call;
        let bytes = self.call.block_bytes();
        let outputs = collective.output_blocks(cx.rank, cx.ranks);
        if bytes == 0 || outputs == 0 {
            return Ok(());
        }
        let mine = collective.block_for(cx.rank);
        let offset = mine as usize * bytes;
        if collective.reduces() {
            let (Some(dst), Some(own)) = (output.block(0, bytes), input.block(mine, bytes)) else {
                return Ok(());
            };
            let divisor = if *op == ReduceOp::Avg { cx.ranks } else { 1 };
            let how = Combination { count: *count, dtype: *dtype, op: *op, divisor };
            // SAFETY:
            // - `new` was promised that input and output are valid; a block of either holds `count`
            //   elements, and the call was checked to have them in the same place or apart.
            return unsafe { cx.engine.combine(number, offset, own, dst, how) };
        }
        for block in 0..outputs {
            let from = collective.root().filter(|_| outputs == 1).unwrap_or(block);
            let Some(base) = output.block(block, bytes) else { continue };
            let dst = PartMut { base, bytes };
            // SAFETY:
            // - `new` was promised that the output is valid; this is one block of it.
            unsafe { cx.engine.fetch(from, Board::Collective, number, offset, dst)? };
        }
        Ok(())
    }
}

/// A post was replaced before it was read.
pub(crate) fn past(rank: u32, number: u64) -> EngineError {
    EngineError::Protocol {
        what: "board",
        detail: format!("rank {rank} replaced post {number} before it was read"),
    }
}
