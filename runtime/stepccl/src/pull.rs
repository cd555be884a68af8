//! A long collective that moves each byte once: ranks tell one another where their input lies, and
//! read it there.
//!
//! Two stages: the first post says what is called and where the input is, the second that
//! this rank has read what it needed. Who was read from waits for the second post of its readers,
//! and keeps its input until then.

use std::collections::VecDeque;

use stepccl_engine::PartMut;
use stepccl_plan::Collective;

use crate::announcement::Announcement;
use crate::called::Called;
use crate::context::{Advance, Context, Failure};
use crate::geometry::STREAMING_BYTES;
use crate::{Call, Memory};

/// Most bytes that are read before other operations get their turn.
pub(crate) const TURN_BYTES: usize = 4 << 20;
/// Stage in which inputs are told.
const INPUTS: u64 = 0;
/// Stage in which a rank tells that it has read all.
const READ: u64 = 1;

/// A long collective of single copies under way on one rank.
#[derive(Debug)]
pub(crate) struct PullTask {
    call: Call,
    announcement: Announcement,
    stage: Stage,
    rung: bool,
    streaming: bool,
    /// Blocks that are not there yet, the one being read first.
    blocks: VecDeque<Block>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Announce,
    Read,
    Tell,
    /// Readers before this rank have finished.
    Readers(u32),
}

/// A block to read: where from, where to, how far.
#[derive(Clone, Copy, Debug)]
struct Block {
    from: u32,
    /// Of the input of that rank.
    index: u32,
    dst: *mut u8,
    done: usize,
    /// Where it lies in that rank's process, once that is known.
    source: Option<u64>,
}

// SAFETY:
// - The pointer is a number here; only an engine writes through it, within calls.
unsafe impl Send for Block {}

/// Whether a collective can be run so: nothing is combined, and something is moved.
pub(crate) const fn can_pull(collective: Collective) -> bool {
    !collective.reduces() && !matches!(collective, Collective::Barrier)
}

impl PullTask {
    /// What was called.
    pub const fn called(&self) -> Called {
        self.announcement.called
    }

    /// # Safety
    ///
    /// The memory of `call` must be valid, and untouched by others, until the task is done; and
    /// its input until the engine has announced that this rank failed, where it ends early.
    pub unsafe fn new(call: Call) -> Self {
        Self {
            announcement: Announcement::new(Called::of(&call)),
            call,
            stage: Stage::Announce,
            rung: false,
            streaming: false,
            blocks: VecDeque::new(),
        }
    }

    pub fn advance(&mut self, cx: &mut Context) -> Result<Advance, Failure> {
        loop {
            match self.stage {
                Stage::Announce => {
                    let inputs = self.call.collective.input_blocks(cx.rank, cx.ranks);
                    let bytes = self.call.block_bytes();
                    if !self.announcement.post(&self.call.input, inputs, bytes, cx)? {
                        return Ok(Advance::Idle);
                    }
                    let outputs = self.call.collective.output_blocks(cx.rank, cx.ranks);
                    self.streaming = bytes.saturating_mul(outputs as usize) >= STREAMING_BYTES;
                    self.note_blocks(cx.rank, cx.ranks);
                    self.stage = Stage::Read;
                }
                Stage::Read => match self.read(cx)? {
                    Advance::Done => self.stage = Stage::Tell,
                    other => return Ok(other),
                },
                Stage::Tell => {
                    if !self.announcement.post(&Memory::None, 0, 0, cx)? {
                        return Ok(Advance::Idle);
                    }
                    Announcement::ring(cx)?;
                    self.stage = Stage::Readers(0);
                }
                Stage::Readers(rank) if rank < cx.ranks => {
                    if self.call.collective.reads(rank, cx.rank)
                        && !self.announcement.is_there(rank, READ, cx)?
                    {
                        self.announcement.wait(rank, READ, cx);
                        return Ok(Advance::Idle);
                    }
                    self.stage = Stage::Readers(rank + 1);
                }
                Stage::Readers(_) => return Ok(Advance::Done),
            }
        }
    }

    /// List the blocks that this rank reads, beginning with its own, and then those of the ranks
    /// behind it, so that not all read from the same.
    fn note_blocks(&mut self, own: u32, ranks: u32) {
        let Call { collective, output, .. } = &self.call;
        let outputs = collective.output_blocks(own, ranks);
        let index = collective.block_for(own);
        let bytes = self.call.block_bytes();
        let root = collective.root().filter(|_| outputs == 1);
        for step in 0..outputs {
            let place = if outputs == 1 { 0 } else { (own + step) % ranks };
            let from = root.unwrap_or(place);
            if let Some(dst) = output.block(place, bytes) {
                self.blocks.push_back(Block { from, index, dst, done: 0, source: None });
            }
        }
    }

    fn read(&mut self, cx: &mut Context) -> Result<Advance, Failure> {
        let bytes = self.call.block_bytes();
        // What is there first is read first.
        for _ in 0..self.blocks.len() {
            let Some(block) = self.blocks.front().copied() else { break };
            let source = match block.source {
                Some(source) => Some(source),
                None => self.find(&block, cx)?,
            };
            let Some(source) = source else {
                self.blocks.rotate_left(1);
                continue;
            };
            let length = (bytes - block.done).min(TURN_BYTES);
            let dst = PartMut { base: block.dst.wrapping_add(block.done), bytes: length };
            // SAFETY:
            // - `new` was promised that input and output are valid and used by nobody else; the
            //   call was checked to have them in the same place or apart.
            unsafe { cx.pull(block.from, source + block.done as u64, dst, self.streaming)? };
            if block.done + length == bytes {
                self.blocks.pop_front();
            } else if let Some(front) = self.blocks.front_mut() {
                *front = Block { done: block.done + length, source: Some(source), ..block };
            }
            return Ok(if self.blocks.is_empty() { Advance::Done } else { Advance::Moved });
        }
        if self.blocks.is_empty() {
            return Ok(Advance::Done);
        }
        if !self.rung {
            self.rung = true;
            Announcement::ring(cx)?;
        }
        for block in &self.blocks {
            self.announcement.wait(block.from, INPUTS, cx);
        }
        Ok(Advance::Idle)
    }

    /// Where a block lies in its rank's process; None where that rank has not said so yet.
    fn find(&self, block: &Block, cx: &mut Context) -> Result<Option<u64>, Failure> {
        let bytes = self.call.block_bytes();
        if block.from == cx.rank {
            let own = self.call.input.block(block.index, bytes);
            return Ok(own.map(|p| p.expose_provenance() as u64));
        }
        if !self.announcement.is_there(block.from, INPUTS, cx)? {
            return Ok(None);
        }
        Ok(Some(self.announcement.locate(block.from, INPUTS, block.index, bytes, cx)?))
    }
}
