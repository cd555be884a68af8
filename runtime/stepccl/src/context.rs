//! What a task works with while it advances.

use std::collections::VecDeque;

use stepccl_engine::{
    Address, Completion, Engine, EngineError, Operation, Part, PartMut, Submission, Token,
};

use crate::any::Receives;
use crate::collective::Round;
use crate::geometry::Geometry;
use crate::pairs::Pairs;
use crate::posts::Posts;
use crate::rounds::{Await, Rounds, Sign};
use crate::scratch::Scratch;

/// What came of letting a task advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advance {
    /// All is done.
    Done,
    /// Something was done; ask again.
    Moved,
    /// Nothing can be done now; what is waited for is in [`Context::waits`].
    Idle,
}

/// Why a task ended early.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The engine refused or failed.
    Engine(EngineError),
    /// Memory of `from` could not be read or written.
    Pull { from: u32, error: EngineError },
    /// Ranks called different collectives as number `number`.
    Calls { number: u64 },
    /// A message of another size or tag than expected arrived.
    Mismatch { sent_bytes: u64, sent_tag: i32 },
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

/// State of a communicator that tasks share.
#[derive(Debug)]
pub(crate) struct Context {
    pub engine: Box<dyn Engine>,
    pub rank: u32,
    pub ranks: u32,
    pub geometry: Geometry,
    pub rounds: Rounds,
    pub posts: Posts,
    /// First byte of each rank's staging.
    pub staging: Box<[Address]>,
    /// What keeps the tasks of this pass from moving.
    pub waits: Vec<Await>,
    /// Slots filled for each peer, and emptied of each peer.
    pub sent: Box<[u64]>,
    pub taken: Box<[u64]>,
    /// Posts of messages.
    pub pairs: Pairs,
    /// Messages of at least so many bytes are read where they lie.
    pub pull_from: usize,
    /// Blocks of at least so many bytes between a root and the others are moved from both ends.
    pub push_from: usize,
    /// Receives that have not met their message.
    pub receives: Receives,
    /// Scratch of packed collectives, for the next one.
    pub scratch: Scratch,
    /// Scratch of reduces.
    pub sources: Vec<Address>,
    /// Room for the rounds of the next collective; empty.
    pub flight: VecDeque<Round>,
    completions: Vec<Completion>,
    in_progress: usize,
}

impl Context {
    pub fn new(
        engine: Box<dyn Engine>,
        rank: u32,
        ranks: u32,
        geometry: Geometry,
        staging: Box<[Address]>,
    ) -> Self {
        let posts = Posts::new(rank, ranks, engine.as_ref());
        let pairs = Pairs::new(rank, ranks, engine.as_ref());
        Self {
            engine,
            posts,
            rank,
            ranks,
            geometry,
            rounds: Rounds::new(rank, ranks),
            staging,
            waits: Vec::new(),
            sent: vec![0; ranks as usize].into(),
            taken: vec![0; ranks as usize].into(),
            pairs,
            pull_from: usize::MAX,
            push_from: usize::MAX,
            receives: Receives::new(ranks),
            scratch: Scratch::default(),
            sources: Vec::new(),
            flight: VecDeque::new(),
            completions: Vec::new(),
            in_progress: 0,
        }
    }

    /// Address in the staging of `rank`.
    pub fn staged(&self, rank: u32, offset: u64) -> Result<Address, EngineError> {
        let base = self.staging.get(rank as usize).copied().unwrap_or(Address::from_raw(0));
        base.checked_add(offset)
    }

    pub fn submit(&mut self, operation: &Operation<'_>) -> Result<Submission, EngineError> {
        let answer = self.engine.submit(operation)?;
        if let Submission::InProgress(_) = answer {
            self.in_progress += 1;
        }
        Ok(answer)
    }

    /// Read memory of the user of a rank, which may be this one.
    ///
    /// # Safety
    ///
    /// As [`Engine::pull`] says.
    pub unsafe fn pull(
        &mut self,
        from: u32,
        address: u64,
        dst: PartMut,
        streaming: bool,
    ) -> Result<(), Failure> {
        // SAFETY:
        // - The caller upholds the contract.
        unsafe { self.engine.pull(from, address, dst, streaming) }
            .map_err(|error| Failure::Pull { from, error })
    }

    /// Write memory of the user of another rank.
    ///
    /// # Safety
    ///
    /// As [`Engine::push`] says.
    pub unsafe fn push(&mut self, to: u32, address: u64, src: Part) -> Result<(), Failure> {
        // SAFETY:
        // - The caller upholds the contract.
        unsafe { self.engine.push(to, address, src) }
            .map_err(|error| Failure::Pull { from: to, error })
    }

    /// Collect what channels have finished.
    pub fn reap(&mut self) -> Result<(), EngineError> {
        if self.in_progress > 0 {
            self.engine.reap(&mut self.completions)?;
        }
        Ok(())
    }

    /// Whether the operation `token` is done; its error where it failed.
    pub fn finished(&mut self, token: Token) -> Result<bool, EngineError> {
        let Some(at) = self.completions.iter().position(|c| c.token == token) else {
            return Ok(false);
        };
        let done = self.completions.swap_remove(at);
        self.in_progress -= 1;
        done.result.map(|_| true)
    }

    pub fn wait_for(&mut self, rank: u32, flag: u32, value: u64) {
        self.waits.push(Await { rank, sign: Sign::Flag { flag, value }, lane: 0 });
    }

    /// Whether the next post of collectives can be made; what it waits for is noted otherwise.
    #[inline]
    pub fn has_room(&mut self) -> Result<bool, EngineError> {
        if self.posts.has_room() {
            return Ok(true);
        }
        let wait = self.posts.room(self.engine.as_ref())?;
        self.waits.extend(wait);
        Ok(wait.is_none())
    }

    pub fn wait_for_post(&mut self, rank: u32, number: u64) {
        self.waits.push(Await { rank, sign: Sign::Post(number), lane: 0 });
    }

    pub fn wait_for_message(&mut self, from: u32, number: u64) {
        let sign = Sign::Message { own: self.rank, number };
        self.waits.push(Await { rank: from, sign, lane: 0 });
    }

    /// Operations that channels still work on.
    pub const fn in_progress(&self) -> usize {
        self.in_progress
    }

    /// Drop what has been reaped and will not be asked for: the tasks are gone.
    pub fn forget_completions(&mut self) {
        self.in_progress = self.in_progress.saturating_sub(self.completions.len());
        self.completions.clear();
    }
}
