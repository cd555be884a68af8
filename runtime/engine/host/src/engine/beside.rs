//! What another engine needs that moves bytes beside this one and shares its regions and its sleep.

use std::time::Duration;

#[cfg(doc)]
use stepccl_engine::Engine;
use stepccl_engine::{Address, Board, EngineError, RegionId, UserMemory};
use stepccl_plan::{DType, ReduceOp};

use super::{HostEngine, system};
use crate::check;
use crate::region::Access;
use crate::sleep::{self, Asleep};

impl HostEngine {
    /// First of `bytes` bytes at `address`, for an engine that moves bytes beside this one. The
    /// region stays registered until [`HostEngine::unpin`].
    ///
    /// # Errors
    ///
    /// [`EngineError`] as for an operation that reads, or writes, this range.
    pub fn pin(
        &self,
        address: Address,
        bytes: u64,
        writable: bool,
    ) -> Result<*mut u8, EngineError> {
        let access = if writable { Access::Write } else { Access::Read };
        let first = self.registry.table().resolve(address, bytes, access)?;
        self.registry.table().hold(address);
        Ok(first)
    }

    /// End of one [`HostEngine::pin`] of an address in this region.
    pub fn unpin(&self, address: Address) {
        self.registry.table().release(address);
    }

    /// An id for a region that this engine does not have: operations on it are refused, and it
    /// stays. Before any region of a caller.
    ///
    /// # Errors
    ///
    /// [`EngineError::TooManyRegions`].
    pub fn reserve(&mut self) -> Result<RegionId, EngineError> {
        let base = std::ptr::null_mut();
        let nothing = UserMemory { base, bytes: 0, writable: false, streaming: false };
        self.registry.register_staging(nothing)
    }

    /// First of `bytes` bytes at `offset` of the data of post `number` on the collective board of
    /// a rank, as long as nobody replaces the post.
    ///
    /// # Errors
    ///
    /// [`EngineError::NoPost`].
    pub fn posted(
        &self,
        rank: u32,
        number: u64,
        offset: usize,
        bytes: usize,
    ) -> Result<*const u8, EngineError> {
        let end = offset.saturating_add(bytes);
        let post = self.post_of(rank, Board::Collective, number, end)?;
        Ok(post.data().wrapping_add(offset).cast_const())
    }

    /// Refuse a combination that the kernels do not have.
    ///
    /// # Errors
    ///
    /// [`EngineError`] as for a reduce of it.
    pub fn check_combination(dtype: DType, op: ReduceOp, scaled: bool) -> Result<(), EngineError> {
        check::combination(dtype, op, scaled)
    }

    /// First half of [`Engine::park`], for an engine that has more to wait for: from now on, whoever
    /// signals this rank wakes it. Look for what is waited for behind this, then call
    /// [`HostEngine::sleep`] in any case.
    #[must_use]
    pub fn fall_asleep(&self) -> Asleep {
        let mut asleep = sleep::fall_asleep(self.own(), self.seen_doorbell);
        asleep.awake = asleep.awake || self.channels.ready();
        asleep
    }

    /// Between the halves of [`Engine::park`]: the first of the sleep, unless something is there. Look
    /// for posts once more behind this. Returns what is left of the limit.
    pub fn nap(&self, asleep: &mut Asleep, limit: Duration) -> Duration {
        self.meter.sleeps.add(u64::from(!asleep.awake));
        let left = sleep::nap(self.own(), asleep, limit);
        asleep.awake = asleep.awake || self.channels.ready();
        left
    }

    /// Second half of [`Engine::park`]: sleep, unless something is there.
    ///
    /// # Errors
    ///
    /// The system refused to wait.
    pub fn sleep(&mut self, asleep: &Asleep, limit: Duration) -> Result<(), EngineError> {
        let (seen, slept) = sleep::sleep(self.own(), asleep, limit);
        self.seen_doorbell = seen;
        slept.map_err(system)
    }
}
