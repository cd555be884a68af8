//! The contract between the executor and the engines that move bytes.
//!
//! An engine answers every submission with one of four words: [`Submission::Done`],
//! [`Submission::InProgress`], [`Submission::Full`] (try again later, never an error) or an error.
//! Engines know addresses, not plans: the executor binds the symbolic buffers of a plan to
//! [`Address`]es before it submits.
#![forbid(unsafe_op_in_unsafe_fn)]

mod address;
mod board;
mod capabilities;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod meter;
mod operation;
mod peer;
mod reason;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use stepccl_plan::Targets;

pub use address::{Address, RegionId};
pub use board::{Board, BoardShape, Combination, Look, Part, PartMut};
pub use capabilities::{Capabilities, Counters};
pub use error::EngineError;
pub use meter::{Count, Meter};
pub use operation::{Completion, Operation, Scale, Submission, Token};
pub use peer::{LostPeer, RankState};
pub use reason::{REASON_BYTES, Reason};

/// Memory of the caller that an engine may touch.
#[derive(Clone, Copy, Debug)]
pub struct UserMemory {
    /// First byte.
    pub base: *mut u8,
    /// Length in bytes.
    pub bytes: u64,
    /// Whether the engine may write it.
    pub writable: bool,
    /// What is written is large and not read soon, so it may go past the caches. A hint.
    pub streaming: bool,
}

// SAFETY:
// - A `UserMemory` is a number and a length; whoever reads through it upholds the contract of
//   `Engine::register`, which is about the memory and not about the thread.
unsafe impl Send for UserMemory {}

/// Staging memory of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staging {
    /// Address of its first byte, aligned to 4096.
    pub base: Address,
    /// Length in bytes.
    pub bytes: u64,
}

/// Ends a [`Engine::park`] from another thread.
pub trait Wake: Send + Sync + fmt::Debug {
    /// Make the current or the next `park` return.
    fn wake(&self);
}

/// Moves bytes, adds them, and carries signals between ranks.
///
/// One thread at a time drives an engine. Ranks are those of the communicator, this rank included;
/// its own staging and flags are readable like those of a peer.
///
/// Order: an operation that is done is visible to every rank that later sees a signal of this
/// rank; operations in progress are not ordered with anything until reaped.
pub trait Engine: Send + fmt::Debug {
    /// Short name as users write it (`host`, `device`, `cuda`, `verbs`).
    fn name(&self) -> &'static str;

    /// What this engine can do; must match what is wired.
    fn capabilities(&self) -> Capabilities;

    /// What it does, readable at any time by any thread.
    fn meter(&self) -> Arc<Meter>;

    /// What it did so far.
    fn counters(&self) -> Counters {
        self.meter().read()
    }

    /// Make `memory` addressable.
    ///
    /// # Safety
    ///
    /// Until `unregister` returns, `memory` must be valid for reads, and for writes where it says
    /// writable, and no safe reference may alias what an operation in progress touches.
    ///
    /// # Errors
    ///
    /// [`EngineError::TooManyRegions`], [`EngineError::BadRegion`] for a null base with a length
    /// or a region past 2^40 bytes.
    unsafe fn register(&mut self, memory: UserMemory) -> Result<RegionId, EngineError>;

    /// Forget a region of `register`. Its id is not used again soon.
    ///
    /// # Errors
    ///
    /// [`EngineError::UnknownRegion`]; [`EngineError::RegionBusy`] while an operation in progress
    /// uses it.
    fn unregister(&mut self, region: RegionId) -> Result<(), EngineError>;

    /// Staging of `rank`, where this engine can address it.
    fn staging(&self, rank: u32) -> Option<Staging>;

    /// Start one operation.
    ///
    /// # Errors
    ///
    /// [`EngineError`] names the address and the rule it breaks; nothing was moved then.
    fn submit(&mut self, operation: &Operation<'_>) -> Result<Submission, EngineError>;

    /// Append the completions of operations that were in progress.
    ///
    /// # Errors
    ///
    /// The other side of a ring broke its protocol; the engine is unusable then.
    fn reap(&mut self, completions: &mut Vec<Completion>) -> Result<(), EngineError>;

    /// Raise own `flag` to `value` and tell `to`. Values of a flag only grow. Who is told sees the
    /// value sooner or later; another rank may see it or not.
    ///
    /// # Errors
    ///
    /// [`EngineError::UnknownFlag`].
    fn signal(&mut self, to: Targets, flag: u32, value: u64) -> Result<(), EngineError>;

    /// Value of `flag` of rank `from`; what that rank did before it is visible.
    ///
    /// # Errors
    ///
    /// [`EngineError::UnknownFlag`].
    fn flag(&self, from: u32, flag: u32) -> Result<u64, EngineError>;

    /// Size of a board, where this engine has boards: then short messages go through them.
    fn board(&self, board: Board) -> Option<BoardShape> {
        let _ = board;
        None
    }

    /// Put up post `number` on an own board: `words`, and the bytes of all `parts` one behind the
    /// other. Numbers of a board only grow. Does not wake anybody: [`ring`](Self::ring) does.
    ///
    /// # Safety
    ///
    /// Every part must be valid for reads during the call.
    ///
    /// # Errors
    ///
    /// [`EngineError::NoPost`] where there is no such board, or no room for so many bytes.
    unsafe fn post(
        &mut self,
        board: Board,
        number: u64,
        words: [u64; 2],
        parts: &[Part],
    ) -> Result<(), EngineError> {
        let bytes = parts.iter().map(|p| p.bytes).sum();
        let _ = words;
        Err(EngineError::NoPost { board, number, bytes, limit: 0 })
    }

    /// Wake those of `to` who sleep, so that they see the posts made so far. Who goes to sleep in
    /// this moment sees them within a fraction of a millisecond.
    ///
    /// # Errors
    ///
    /// The system refused.
    fn ring(&mut self, to: Targets) -> Result<(), EngineError> {
        let _ = to;
        Ok(())
    }

    /// Look for post `number` on a board of rank `from`. Where it is there, its data is visible,
    /// and so is what that rank did before.
    ///
    /// # Errors
    ///
    /// [`EngineError::NoPost`].
    fn look(&self, from: u32, board: Board, number: u64) -> Result<Look, EngineError> {
        let _ = from;
        Err(EngineError::NoPost { board, number, bytes: 0, limit: 0 })
    }

    /// Copy `bytes` bytes at `offset` of the data of post `number` of rank `from` to `dst`. The
    /// post was found to be there, and cannot be replaced meanwhile.
    ///
    /// # Safety
    ///
    /// `dst` must be valid for writes of so many bytes.
    ///
    /// # Errors
    ///
    /// [`EngineError::NoPost`].
    unsafe fn fetch(
        &mut self,
        from: u32,
        board: Board,
        number: u64,
        offset: usize,
        dst: PartMut,
    ) -> Result<(), EngineError> {
        let _ = (from, offset);
        Err(EngineError::NoPost { board, number, bytes: dst.bytes, limit: 0 })
    }

    /// Combine elements at `offset` of the data of post `number` on the collective board of every
    /// rank, in order of rank, into `dst`. All were found to be there, as for
    /// [`fetch`](Self::fetch). What this rank posted is read at `own`, where it still is.
    ///
    /// # Safety
    ///
    /// `dst` must be valid for writes, and `own` for reads, of all elements; they are the same or
    /// do not overlap.
    ///
    /// # Errors
    ///
    /// [`EngineError::NoPost`].
    unsafe fn combine(
        &mut self,
        number: u64,
        offset: usize,
        own: *const u8,
        dst: *mut u8,
        how: Combination,
    ) -> Result<(), EngineError> {
        let _ = (offset, own, dst);
        let bytes = how.count * how.dtype.size();
        Err(EngineError::NoPost { board: Board::Collective, number, bytes, limit: 0 })
    }

    /// Copy `dst.bytes` bytes at `address` in the process of rank `from` to `dst`: memory of its
    /// user, which that rank keeps as it is until it knows that this has ended. Fails where that
    /// rank has ended or failed by then, so that what was read is what it meant. `from` may be this
    /// rank: then it is a copy within this process. `streaming` is the
    /// hint of [`UserMemory`].
    ///
    /// # Safety
    ///
    /// `dst` must be valid for writes, and nothing else may use it during the call. Where `from` is
    /// this rank, `address` must be valid for reads, and be `dst` or apart from it.
    ///
    /// # Errors
    ///
    /// [`EngineError::PeerMemory`]: the system refuses, or this engine cannot.
    unsafe fn pull(
        &mut self,
        from: u32,
        address: u64,
        dst: PartMut,
        streaming: bool,
    ) -> Result<(), EngineError> {
        let _ = streaming;
        let message = "this engine does not read it".to_owned();
        Err(EngineError::PeerMemory { rank: from, address, bytes: dst.bytes as u64, message })
    }

    /// Copy `src` to `address` in the process of rank `to`, another rank: memory of its user, which
    /// that rank leaves alone until it knows that this has ended. Nothing is written where that rank
    /// has ended or failed before; [`settle`](Self::settle) on its side waits for what is under way.
    ///
    /// # Safety
    ///
    /// `src` must be valid for reads, and nobody may write it during the call.
    ///
    /// # Errors
    ///
    /// [`EngineError::PeerMemory`]: the system refuses, the rank has given up, or this engine
    /// cannot.
    unsafe fn push(&mut self, to: u32, address: u64, src: Part) -> Result<(), EngineError> {
        let message = "this engine does not write it".to_owned();
        Err(EngineError::PeerMemory { rank: to, address, bytes: src.bytes as u64, message })
    }

    /// After this rank has announced that it failed: wait, for `limit` at most, until no peer writes
    /// memory of this process by [`push`](Self::push). Whether that is so; then none will again.
    fn settle(&mut self, limit: Duration) -> bool {
        let _ = limit;
        true
    }

    /// Sleep until a rank signals this one, a completion arrives, [`Wake::wake`] is called or
    /// `limit` is over. May return early. A signal between the last look at a flag and `park`
    /// is never slept through.
    ///
    /// # Errors
    ///
    /// The system refused to wait.
    fn park(
        &mut self,
        ready: &mut dyn FnMut(&dyn Engine) -> bool,
        limit: Duration,
    ) -> Result<(), EngineError>;

    /// Handle that ends a `park`.
    fn waker(&self) -> Arc<dyn Wake>;

    /// Why this rank is about to announce a failure. Peers read a [`Reason`] of it by
    /// [`why_lost`](Self::why_lost). Of no effect after the announcement.
    fn explain(&mut self, reason: &str) {
        let _ = reason;
    }

    /// Tell every peer what became of this rank.
    fn announce(&mut self, state: RankState);

    /// Append every peer that died, closed or failed. Costs system calls.
    fn lost_peers(&mut self, lost: &mut Vec<LostPeer>);

    /// What is known of the end of a link to `rank`, where that is more than that it ended. Where it
    /// announced a failure: what it said by [`explain`](Self::explain), and nothing else.
    fn why_lost(&self, rank: u32) -> Option<String> {
        let _ = rank;
        None
    }
}
