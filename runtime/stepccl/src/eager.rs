//! A short collective: every rank posts its input along with what it called, and takes what it
//! needs from the posts of the others.

use stepccl_engine::{Board, Combination, EngineError, Look, Part, PartMut};
use stepccl_plan::{Collective, ReduceOp, Targets};

use crate::called::Called;
use crate::context::{Advance, Context, Failure};
use crate::shape::Shape;
use crate::{Call, Memory};

/// Looks at a peer's post in a row: a peer that calls now is met without a way back.
const LOOKS: u32 = 32;

/// A short collective under way on one rank.
#[derive(Debug)]
pub(crate) struct EagerTask {
    call: Call,
    shape: Shape,
    stage: Stage,
}

/// How far a short collective is.
#[derive(Debug)]
pub(crate) struct Stage {
    /// Number of its post, once that is made.
    number: Option<u64>,
    /// Posts of ranks before this one have been seen, where they are needed.
    at: u32,
}

impl Stage {
    /// At the start.
    #[inline]
    pub const fn new() -> Self {
        Self { number: None, at: 0 }
    }
}

/// A short collective, wherever its parts are kept.
struct Eager<'a> {
    call: &'a Call,
    shape: &'a Shape,
    stage: &'a mut Stage,
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
    /// A call, its shape on this rank, and how far it is.
    ///
    /// # Safety
    ///
    /// The memory of `call` must be valid, and untouched by others, until the task is done or
    /// dropped.
    pub const unsafe fn new(call: Call, shape: Shape, stage: Stage) -> Self {
        Self { call, shape, stage }
    }

    /// What was called.
    pub const fn called(&self) -> Called {
        self.shape.called
    }

    pub fn advance(&mut self, cx: &mut Context) -> Result<Advance, Failure> {
        let Self { call, shape, stage } = self;
        Eager { call, shape, stage }.advance(cx)
    }
}

/// Let a short collective of `shape` that is at `stage` advance.
///
/// # Safety
///
/// As for [`EagerTask::new`], until this returns.
#[inline]
pub(crate) unsafe fn advance(
    call: &Call,
    shape: &Shape,
    stage: &mut Stage,
    cx: &mut Context,
) -> Result<Advance, Failure> {
    Eager { call, shape, stage }.advance(cx)
}

impl Eager<'_> {
    #[inline]
    fn advance(&mut self, cx: &mut Context) -> Result<Advance, Failure> {
        let number = match self.stage.number {
            Some(number) => number,
            None if cx.has_room()? => self.post(cx)?,
            None => return Ok(Advance::Idle),
        };
        let sources = &self.shape.sources;
        let mut at = self.stage.at.max(sources.start);
        while at < sources.end {
            if at != cx.rank && !self.is_there(at, number, cx)? {
                self.stage.at = at;
                self.note_missing(number, cx)?;
                return Ok(Advance::Idle);
            }
            at += 1;
        }
        self.stage.at = at;
        self.deliver(number, cx)?;
        Ok(Advance::Done)
    }

    #[inline]
    fn post(&mut self, cx: &mut Context) -> Result<u64, EngineError> {
        let Shape { called: Called(words), inputs, block_bytes, .. } = *self.shape;
        let number = cx.posts.take();
        // SAFETY:
        // - The caller vouched that the input is valid; the parts are its blocks.
        let mut post =
            |parts: &[Part]| unsafe { cx.engine.post(Board::Collective, number, words, parts) };
        match &self.call.input {
            _ if inputs == 0 => post(&[])?,
            Memory::None => post(&[])?,
            Memory::Contiguous(base) => {
                post(&[Part { base: *base, bytes: block_bytes * inputs as usize }])?;
            }
            Memory::Blocks(blocks) => {
                let part = |base: &*mut u8| Part { base: *base, bytes: block_bytes };
                post(&blocks.iter().map(part).collect::<Vec<_>>())?;
            }
        }
        self.stage.number = Some(number);
        cx.engine.ring(Targets::All)?;
        Ok(number)
    }

    #[inline]
    fn is_there(&mut self, rank: u32, number: u64, cx: &mut Context) -> Result<bool, Failure> {
        let mut looks = 0;
        loop {
            match cx.engine.look(rank, Board::Collective, number)? {
                Look::Here(words) if words == self.shape.called.0 => {
                    cx.posts.saw(rank, number);
                    return Ok(true);
                }
                Look::Here(_) => return Err(Failure::Calls { number }),
                Look::Past => return Err(past(rank, number).into()),
                Look::Absent if looks == LOOKS => return Ok(false),
                Look::Absent => {
                    looks += 1;
                    std::hint::spin_loop();
                }
            }
        }
    }

    /// Note all posts that are waited for, so that an error names every rank that is missing.
    #[cold]
    fn note_missing(&self, number: u64, cx: &mut Context) -> Result<(), EngineError> {
        for rank in self.stage.at..self.shape.sources.end {
            if rank != cx.rank && cx.engine.look(rank, Board::Collective, number)? == Look::Absent {
                cx.wait_for_post(rank, number);
            }
        }
        Ok(())
    }

    /// Take from the posts what this rank gets.
    #[inline]
    fn deliver(&self, number: u64, cx: &mut Context) -> Result<(), EngineError> {
        let Call { collective, dtype, op, count, input, output, .. } = self.call;
        let Shape { block_bytes: bytes, outputs, mine, .. } = *self.shape;
        if bytes == 0 || outputs == 0 {
            return Ok(());
        }
        let offset = mine as usize * bytes;
        if collective.reduces() {
            let (Some(dst), Some(own)) = (output.block(0, bytes), input.block(mine, bytes)) else {
                return Ok(());
            };
            let divisor = if *op == ReduceOp::Avg { cx.ranks } else { 1 };
            let how = Combination { count: *count, dtype: *dtype, op: *op, divisor };
            // SAFETY:
            // - The caller vouched that input and output are valid; a block of either holds `count`
            //   elements, and the call was checked to have them in the same place or apart.
            return unsafe { cx.engine.combine(number, offset, own, dst, how) };
        }
        for block in 0..outputs {
            let from = collective.root().filter(|_| outputs == 1).unwrap_or(block);
            let Some(base) = output.block(block, bytes) else { continue };
            let dst = PartMut { base, bytes };
            // SAFETY:
            // - The caller vouched that the output is valid; this is one block of it.
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
