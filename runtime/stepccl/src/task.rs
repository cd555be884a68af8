//! An operation in a queue: what to do, whose it is, and until when.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stepccl_engine::EngineError;

use crate::Call;
use crate::any::AnyTask;
use crate::collective::CollectiveTask;
use crate::context::{Advance, Context, Failure};
use crate::eager::{EagerTask, Stage};
use crate::error::With;
use crate::local::LocalTask;
use crate::packed::PackedTask;
use crate::pair::PairTask;
use crate::pull::PullTask;
use crate::shape::Shape;
use crate::way::Way;
use crate::work::{Keep, WorkState};

/// What an operation does.
#[derive(Debug)]
pub(crate) enum Task {
    Eager(EagerTask),
    Pull(PullTask),
    Collective(CollectiveTask),
    Pair(PairTask),
    Any(AnyTask),
    Packed(PackedTask),
    Local(LocalTask),
}

impl Task {
    /// The task of a collective that goes a way, on `rank` of `ranks`.
    ///
    /// # Safety
    ///
    /// The memory of `call` must be valid, and untouched by others, until the task is done or
    /// `release` has returned well; where it ends early, behind the engine's announcement that this
    /// rank failed.
    pub unsafe fn of_call(call: Call, way: Way, rank: u32, ranks: u32) -> Self {
        // SAFETY:
        // - The caller promises what all of them ask for.
        unsafe {
            match way {
                Way::Eager => {
                    let shape = Shape::of(&call, rank, ranks);
                    Self::Eager(EagerTask::new(call, shape, Stage::new()))
                }
                Way::Pull => Self::Pull(PullTask::new(call)),
                Way::Program(prepared) => Self::Collective(CollectiveTask::new(call, prepared)),
            }
        }
    }

    pub fn advance(&mut self, cx: &mut Context) -> Result<Advance, Failure> {
        match self {
            Self::Eager(task) => task.advance(cx),
            Self::Pull(task) => task.advance(cx),
            Self::Collective(task) => task.advance(cx),
            Self::Pair(task) => task.advance(cx),
            Self::Any(task) => task.advance(cx),
            Self::Packed(task) => task.advance(cx),
            Self::Local(task) => Ok(task.advance()),
        }
    }

    /// It is in its queue now, behind all that were put into queues before.
    pub fn posted(&mut self, cx: &mut Context) {
        match self {
            Self::Pair(task) => task.posted(&mut cx.receives),
            Self::Any(task) => task.posted(&mut cx.receives),
            Self::Eager(_)
            | Self::Pull(_)
            | Self::Collective(_)
            | Self::Packed(_)
            | Self::Local(_) => {}
        }
    }

    pub fn release(&mut self, cx: &mut Context) -> Result<(), EngineError> {
        match self {
            // Its memory is touched within calls only.
            Self::Eager(_) => Ok(()),
            Self::Pull(task) => task.release(cx),
            Self::Collective(task) => task.release(cx),
            Self::Pair(task) => task.release(cx),
            Self::Any(task) => task.release(cx),
            Self::Packed(task) => task.release(cx),
            Self::Local(_) => Ok(()),
        }
    }
}

/// What errors say about an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub name: &'static str,
    pub sequence: u64,
    pub bytes: u64,
    pub with: Option<With>,
    /// Tag of a send or recv.
    pub tag: i32,
    /// When its time began; an operation that ends at once never reads the clock.
    pub started: Option<Instant>,
    pub timeout: Duration,
}

impl Identity {
    /// Its time begins now, unless it has begun.
    pub fn start(&mut self) {
        if self.started.is_none() {
            self.started = Some(Instant::now());
        }
    }

    pub fn is_late(&self, now: Instant) -> bool {
        self.waited(now) >= self.timeout
    }

    /// Time since it began.
    pub fn waited(&self, now: Instant) -> Duration {
        self.started.map_or(Duration::ZERO, |started| now.saturating_duration_since(started))
    }
}

/// An operation that is ready to run.
#[derive(Debug)]
pub(crate) struct Member {
    /// Queue it belongs to: operations of one queue run one after the other.
    pub lane: usize,
    pub task: Task,
    pub identity: Identity,
}

impl Member {
    /// With what a queue needs; `state` hears of its end.
    pub fn queued(self, state: &Arc<WorkState>, keep: Keep) -> Entry {
        let Self { lane, task, identity } = self;
        Entry { lane, task, identity, state: Arc::clone(state), keep }
    }
}

/// An operation in a queue.
#[derive(Debug)]
pub(crate) struct Entry {
    pub lane: usize,
    pub task: Task,
    pub identity: Identity,
    pub state: Arc<WorkState>,
    pub keep: Keep,
}

/// Lane of collectives.
pub(crate) const COLLECTIVES: usize = 0;

/// Lanes of a communicator of `ranks` ranks.
pub(crate) const fn lanes(ranks: u32) -> usize {
    2 + 2 * ranks as usize
}

/// Lane of receives from any source of a communicator of `ranks` ranks.
pub(crate) const fn any_lane(ranks: u32) -> usize {
    1 + 2 * ranks as usize
}

/// Lane of sends to `peer`; of copies within this rank, where that is `peer`.
pub(crate) const fn send_lane(peer: u32) -> usize {
    1 + 2 * peer as usize
}

/// Lane of receives from `peer`.
pub(crate) const fn recv_lane(peer: u32) -> usize {
    2 + 2 * peer as usize
}
