//! The posts of collectives that read one another's memory: where buffers lie, and who is how far.
//!
//! A collective makes a few posts in a row, its stages. Each has the words of the call, with the
//! number of the stage in them, and as data the number of pointers, with a note in its high half, and
//! the pointers to buffers.

use stepccl_engine::{Board, EngineError, Look, Part, PartMut};
use stepccl_plan::Targets;

use crate::Memory;
use crate::called::Called;
use crate::context::{Context, Failure};
use crate::eager::past;

/// Place of the stage in the first word, apart from what [`Called`] uses.
const STAGE_SHIFT: u32 = 24;

/// Bytes of data of a post with a pointer for every rank.
pub(crate) const fn announcement_bytes(ranks: u32) -> usize {
    (1 + ranks as usize) * 8
}

/// The posts of one collective.
#[derive(Debug)]
pub(crate) struct Announcement {
    pub called: Called,
    /// Number of the post of stage 0, once that is made.
    first: u64,
    stages: u64,
}

impl Announcement {
    pub const fn new(called: Called) -> Self {
        Self { called, first: 0, stages: 0 }
    }

    const fn words(&self, stage: u64) -> [u64; 2] {
        let Called([what, count]) = self.called;
        [what | stage << STAGE_SHIFT, count]
    }

    /// Make the post of the next stage, which tells where `blocks` blocks of `memory` lie, and `note`.
    /// False where there is no room yet; what is waited for is noted then.
    pub fn post(
        &mut self,
        (memory, blocks, block_bytes): (&Memory, u32, usize),
        note: u32,
        cx: &mut Context,
    ) -> Result<bool, EngineError> {
        if !cx.has_room()? {
            return Ok(false);
        }
        let pieces = memory.ranges_mut(blocks, block_bytes);
        let mut data: Vec<u64> = vec![0];
        data.extend(pieces.map(|(base, _)| base.expose_provenance() as u64));
        data[0] = (data.len() as u64 - 1) | (u64::from(note) << 32);
        let part = Part { base: data.as_ptr().cast(), bytes: size_of_val(&data[..]) };
        let number = if self.stages == 0 { cx.posts.take() } else { cx.posts.take_again() };
        self.first = number - self.stages;
        let words = self.words(self.stages);
        // SAFETY:
        // - The part is the list above.
        unsafe { cx.engine.post(Board::Collective, number, words, &[part])? };
        self.stages += 1;
        Ok(true)
    }

    /// Wake who sleeps and waits for a post.
    pub fn ring(cx: &mut Context) -> Result<(), EngineError> {
        cx.engine.ring(Targets::All)
    }

    /// Whether `rank` has made its post of `stage`.
    pub fn is_there(&self, rank: u32, stage: u64, cx: &mut Context) -> Result<bool, Failure> {
        // A rank that called something else may never make a later post.
        if stage > 0
            && let Look::Here(words) = cx.engine.look(rank, Board::Collective, self.first)?
            && words != self.words(0)
        {
            return Err(Failure::Calls { number: self.first });
        }
        let number = self.first + stage;
        match cx.engine.look(rank, Board::Collective, number)? {
            Look::Absent => Ok(false),
            Look::Here(words) if words == self.words(stage) => {
                cx.posts.saw(rank, number);
                Ok(true)
            }
            Look::Here(_) => Err(Failure::Calls { number }),
            Look::Past => Err(past(rank, number).into()),
        }
    }

    /// Note that the post of `stage` of `rank` is waited for.
    pub fn wait(&self, rank: u32, stage: u64, cx: &mut Context) {
        cx.wait_for_post(rank, self.first + stage);
    }

    /// Address of a block of the buffer that `rank` told of in `stage`; its post is there.
    pub fn locate(
        &self,
        rank: u32,
        stage: u64,
        block: u32,
        block_bytes: usize,
        cx: &mut Context,
    ) -> Result<u64, EngineError> {
        let mut word = |at| self.word(rank, stage, at, cx);
        // One pointer stands for all blocks.
        if word(0)? as u32 == 1 {
            let skipped = u64::from(block) * block_bytes as u64;
            Ok(word(1)?.wrapping_add(skipped))
        } else {
            word(1 + block as usize)
        }
    }

    /// The note in the post of `stage` of `rank`, which is there.
    pub fn note(&self, rank: u32, stage: u64, cx: &mut Context) -> Result<u32, EngineError> {
        Ok((self.word(rank, stage, 0, cx)? >> 32) as u32)
    }

    fn word(&self, rank: u32, stage: u64, at: usize, cx: &mut Context) -> Result<u64, EngineError> {
        let mut word = 0u64;
        let dst = PartMut { base: (&raw mut word).cast(), bytes: 8 };
        let number = self.first + stage;
        // SAFETY:
        // - `dst` is a word of eight bytes.
        unsafe { cx.engine.fetch(rank, Board::Collective, number, at * 8, dst)? };
        Ok(word)
    }
}
