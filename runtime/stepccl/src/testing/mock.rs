//! The made-up engine of one rank.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use stepccl_engine::{
    Board, BoardShape, Capabilities, Completion, Engine, EngineError, Look, LostPeer, Meter,
    Operation, Part, PartMut, RankState, RegionId, Staging, Submission, UserMemory, Wake,
};
use stepccl_plan::Targets;

use super::world::World;
use crate::context::Context;
use crate::geometry::Geometry;
use crate::progress::{Abort, Progress};

pub(super) type Shared = Arc<Mutex<World>>;

pub(super) fn lock(world: &Shared) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Mock {
    world: Shared,
    rank: u32,
    geometry: Geometry,
    staging_bytes: u64,
    meter: Arc<Meter>,
    waker: Arc<Bell>,
}

#[derive(Debug, Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Engine for Mock {
    fn name(&self) -> &'static str {
        "mock"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            reduces: true,
            peer_user_memory: false,
            channels: 1,
            max_reduce_sources: 64,
            flags: self.geometry.flags(),
        }
    }

    fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    unsafe fn register(&mut self, memory: UserMemory) -> Result<RegionId, EngineError> {
        lock(&self.world).register(self.rank, memory)
    }

    fn unregister(&mut self, region: RegionId) -> Result<(), EngineError> {
        lock(&self.world).unregister(self.rank, region)
    }

    fn staging(&self, rank: u32) -> Option<Staging> {
        (rank < self.geometry.ranks)
            .then(|| Staging { base: World::staging(rank), bytes: self.staging_bytes })
    }

    fn submit(&mut self, operation: &Operation<'_>) -> Result<Submission, EngineError> {
        lock(&self.world).submit(self.rank, operation)
    }

    fn reap(&mut self, completions: &mut Vec<Completion>) -> Result<(), EngineError> {
        lock(&self.world).reap(self.rank, completions)
    }

    fn signal(&mut self, to: Targets, flag: u32, value: u64) -> Result<(), EngineError> {
        lock(&self.world).signal(self.rank, to, flag, value)
    }

    fn flag(&self, from: u32, flag: u32) -> Result<u64, EngineError> {
        lock(&self.world).flag(self.rank, from, flag)
    }

    fn board(&self, board: Board) -> Option<BoardShape> {
        lock(&self.world).board(board)
    }

    unsafe fn post(
        &mut self,
        board: Board,
        number: u64,
        words: [u64; 2],
        parts: &[Part],
    ) -> Result<(), EngineError> {
        let mut data = Vec::new();
        for part in parts.iter().filter(|part| part.bytes > 0) {
            // SAFETY:
            // - The caller promises that the part is valid for reads during this call.
            data.extend(unsafe { std::slice::from_raw_parts(part.base, part.bytes) });
        }
        lock(&self.world).post(self.rank, board, number, words, data)
    }

    fn look(&self, from: u32, board: Board, number: u64) -> Result<Look, EngineError> {
        Ok(lock(&self.world).look(self.rank, from, board, number))
    }

    unsafe fn fetch(
        &mut self,
        from: u32,
        _board: Board,
        number: u64,
        offset: usize,
        dst: PartMut,
    ) -> Result<(), EngineError> {
        let data = lock(&self.world).fetched(self.rank, from, number);
        let data = &data[offset..offset + dst.bytes];
        // SAFETY:
        // - The caller promises that the destination is valid for writes of as many bytes.
        unsafe { std::ptr::copy(data.as_ptr(), dst.base, data.len()) };
        Ok(())
    }

    fn park(
        &mut self,
        ready: &mut dyn FnMut(&dyn Engine) -> bool,
        limit: Duration,
    ) -> Result<(), EngineError> {
        if lock(&self.world).refuses_park(self.rank) {
            return Err(EngineError::System { call: "futex", message: "made up".to_owned() });
        }
        if !ready(self) && !self.waker.0.swap(false, Ordering::AcqRel) {
            std::thread::sleep(limit.min(Duration::from_millis(1)));
        }
        Ok(())
    }

    fn waker(&self) -> Arc<dyn Wake> {
        Arc::<Bell>::clone(&self.waker)
    }

    fn announce(&mut self, state: RankState) {
        lock(&self.world).announce(self.rank, state);
    }

    fn lost_peers(&mut self, lost: &mut Vec<LostPeer>) {
        lock(&self.world).lost(self.rank, lost);
    }
}

/// The executor of `rank` in `world`, and what aborts it.
pub(super) fn progress(
    world: &Shared,
    rank: u32,
    geometry: Geometry,
    staging_bytes: usize,
) -> (Progress, Arc<Abort>) {
    let engine = Mock {
        world: Arc::clone(world),
        rank,
        geometry,
        staging_bytes: staging_bytes as u64,
        meter: Arc::default(),
        waker: Arc::default(),
    };
    let staging = (0..geometry.ranks).map(World::staging).collect();
    let context = Context::new(Box::new(engine), rank, geometry.ranks, geometry, staging);
    let abort = Arc::new(Abort::default());
    (Progress::new(context, "mock.0".to_owned(), Arc::clone(&abort)), abort)
}
