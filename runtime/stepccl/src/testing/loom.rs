//! When a post or a slot may be written again, under a model checker.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p stepccl --release --lib loom`. The rules run as they are, over
//! an engine that orders what its contract says and no more. A place that is written while a peer
//! reads it fails a test as a race. The tests in `without` take one barrier away at a time and expect
//! to fail: so the model would notice if the code lacked it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use stepccl_engine::{
    Board, BoardShape, Capabilities, Completion, Engine, EngineError, Look, LostPeer, Meter,
    Operation, RankState, RegionId, Staging, Submission, UserMemory, Wake,
};
use stepccl_plan::Targets;

use crate::geometry::{FINISHED, Geometry};
use crate::pairs::Pairs;
use crate::posts::Posts;
use crate::rounds::Rounds;

const RANKS: u32 = 2;
/// Places of a board.
const PLACES: usize = 2;
/// Posts of a model, messages of another one: each place is used again.
const POSTS: u64 = 4;
/// A flag of a plan.
const PHASE: u32 = 1;

/// A barrier that one side does without.
#[derive(Clone, Copy, PartialEq)]
enum Without {
    Nothing,
    Release,
    Acquire,
}
use Without::Nothing;

/// What one rank writes: posts, a slot of staging, flags.
struct Segment {
    numbers: [AtomicU64; PLACES],
    data: [UnsafeCell<u64>; PLACES],
    phase: AtomicU64,
    finished: AtomicU64,
    read: AtomicU64,
}

/// The engine of one rank.
struct Ordered {
    segments: Arc<[Segment; 2]>,
    rank: u32,
    without: Without,
}

// SAFETY:
// - The cells are those of the checker, which fails the test on a read or write of one that is not
//   ordered with every other write.
unsafe impl Sync for Segment {}
// SAFETY:
// - Nothing in it belongs to a thread.
unsafe impl Send for Segment {}

impl fmt::Debug for Ordered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ordered").field("rank", &self.rank).finish_non_exhaustive()
    }
}

impl Ordered {
    fn both(without: [Without; 2]) -> [Self; 2] {
        let words = || [AtomicU64::new(0), AtomicU64::new(0)];
        let segments = Arc::new([(); 2].map(|()| Segment {
            numbers: words(),
            data: [UnsafeCell::new(0), UnsafeCell::new(0)],
            phase: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            read: AtomicU64::new(0),
        }));
        let rank =
            |rank: u32| Self { segments: segments.clone(), rank, without: without[rank as usize] };
        [rank(0), rank(1)]
    }

    fn acquire(&self) -> Ordering {
        if self.without == Without::Acquire { Ordering::Relaxed } else { Ordering::Acquire }
    }

    fn release(&self) -> Ordering {
        if self.without == Without::Release { Ordering::Relaxed } else { Ordering::Release }
    }

    fn word(&self, rank: u32, flag: u32) -> &AtomicU64 {
        let segment = &self.segments[rank as usize];
        match flag {
            FINISHED => &segment.finished,
            PHASE => &segment.phase,
            _ => &segment.read,
        }
    }

    /// Write the data of an own place.
    fn write(&self, number: u64) {
        let place = number as usize % PLACES;
        self.segments[self.rank as usize].data[place].with_mut(|data| {
            // SAFETY:
            // - The pointer is that of a live cell; the checker fails the test if it is used now.
            unsafe { *data = number }
        });
    }

    /// Data of a place of the other rank.
    fn read(&self, number: u64) -> u64 {
        let place = number as usize % PLACES;
        self.segments[1 - self.rank as usize].data[place].with(|data| {
            // SAFETY:
            // - The pointer is that of a live cell; the checker fails the test if it is written now.
            unsafe { *data }
        })
    }

    /// Make post `number`.
    fn put(&self, number: u64) {
        self.write(number);
        let place = number as usize % PLACES;
        self.segments[self.rank as usize].numbers[place].store(number + 1, self.release());
    }

    fn wait_for_post(&self, board: Board, number: u64) {
        while self.look(1 - self.rank, board, number).unwrap() == Look::Absent {
            thread::yield_now();
        }
    }

    fn wait_for_flag(&self, flag: u32, value: u64) {
        while self.flag(1 - self.rank, flag).unwrap() < value {
            thread::yield_now();
        }
    }
}

impl Engine for Ordered {
    fn name(&self) -> &'static str {
        "ordered"
    }
    fn signal(&mut self, _: Targets, flag: u32, value: u64) -> Result<(), EngineError> {
        self.word(self.rank, flag).store(value, self.release());
        Ok(())
    }
    fn flag(&self, from: u32, flag: u32) -> Result<u64, EngineError> {
        Ok(self.word(from, flag).load(self.acquire()))
    }
    fn board(&self, _: Board) -> Option<BoardShape> {
        Some(BoardShape { posts: PLACES as u32, bytes: 8 })
    }
    fn look(&self, from: u32, _: Board, number: u64) -> Result<Look, EngineError> {
        let place = number as usize % PLACES;
        let found = self.segments[from as usize].numbers[place].load(self.acquire());
        Ok(match found.cmp(&(number + 1)) {
            std::cmp::Ordering::Less => Look::Absent,
            std::cmp::Ordering::Equal => Look::Here([0; 2]),
            std::cmp::Ordering::Greater => Look::Past,
        })
    }

    fn capabilities(&self) -> Capabilities {
        unreachable!("the rules do not ask")
    }
    fn meter(&self) -> Arc<Meter> {
        unreachable!("nobody counts")
    }
    unsafe fn register(&mut self, _: UserMemory) -> Result<RegionId, EngineError> {
        unreachable!("there is no memory of users")
    }
    fn unregister(&mut self, _: RegionId) -> Result<(), EngineError> {
        unreachable!("there is no memory of users")
    }
    fn staging(&self, _: u32) -> Option<Staging> {
        None
    }
    fn submit(&mut self, _: &Operation<'_>) -> Result<Submission, EngineError> {
        unreachable!("there is nothing to move")
    }
    fn reap(&mut self, _: &mut Vec<Completion>) -> Result<(), EngineError> {
        Ok(())
    }
    fn park(
        &mut self,
        _: &mut dyn FnMut(&dyn Engine) -> bool,
        _: Duration,
    ) -> Result<(), EngineError> {
        unreachable!("nobody sleeps")
    }
    fn waker(&self) -> Arc<dyn Wake> {
        unreachable!("nobody sleeps")
    }
    fn announce(&mut self, _: RankState) {}
    fn lost_peers(&mut self, _: &mut Vec<LostPeer>) {}
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

/// Run both ranks.
fn pair(
    without: [Without; 2],
    first: impl Fn(Ordered) + Copy + Sync + Send + 'static,
    second: impl Fn(Ordered) + Copy + Sync + Send + 'static,
) {
    model(move || {
        let [near, far] = Ordered::both(without);
        let thread = thread::spawn(move || second(far));
        first(near);
        thread.join().unwrap();
    });
}

/// Number of the next post, when its place is free.
fn next_post(posts: &mut Posts, engine: &Ordered) -> u64 {
    while !posts.has_room() && posts.room(engine).unwrap().is_some() {
        thread::yield_now();
    }
    posts.take()
}

/// Broadcasts of one root: it reads no post of the other rank, and looks at them only for room.
fn broadcasts(without: [Without; 2]) {
    let root = |engine: Ordered| {
        let mut posts = Posts::new(0, RANKS, &engine);
        for _ in 0..POSTS {
            engine.put(next_post(&mut posts, &engine));
        }
    };
    let other = |engine: Ordered| {
        let mut posts = Posts::new(1, RANKS, &engine);
        for _ in 0..POSTS {
            let number = next_post(&mut posts, &engine);
            engine.put(number);
            engine.wait_for_post(Board::Collective, number);
            posts.saw(0, number);
            assert_eq!(engine.read(number), number);
        }
    };
    pair(without, root, other);
}

/// Messages from one rank to the other, which says now and then how many it has read.
fn messages(without: [Without; 2]) {
    let geometry = || Geometry::new(RANKS, 1 << 20, true);
    let sender = move |engine: Ordered| {
        let mut pairs = Pairs::new(0, RANKS, &engine);
        for _ in 0..POSTS {
            while pairs.room(1, &geometry(), &engine).unwrap().is_some() {
                thread::yield_now();
            }
            engine.put(pairs.post(1));
        }
    };
    let receiver = move |mut engine: Ordered| {
        let mut pairs = Pairs::new(1, RANKS, &engine);
        for _ in 0..POSTS {
            let number = pairs.next(0);
            engine.wait_for_post(Board::Pair(1), number);
            assert_eq!(engine.read(number), number);
            if let Some(read) = pairs.read(0, false) {
                engine.signal(Targets::One(0), geometry().read_flag(0), read).unwrap();
            }
        }
    };
    pair(without, sender, receiver);
}

/// Rounds that use one slot of staging after the other. The reader says that it has finished a round
/// by the flag for it, or, in an operation of one round each, by a flag of the next operation.
fn rounds(by: u32, without: [Without; 2]) {
    let owner = move |mut engine: Ordered| {
        let mut rounds = Rounds::new(0, RANKS);
        for number in 0..POSTS {
            let needed = (number + 1).saturating_sub(PLACES as u64);
            loop {
                if by != FINISHED {
                    rounds.saw(1, engine.flag(1, by).unwrap());
                }
                if rounds.check(needed, &engine).unwrap().is_none() {
                    break;
                }
                thread::yield_now();
            }
            engine.write(number);
            engine.signal(Targets::One(1), PHASE, number + 1).unwrap();
        }
    };
    let reader = move |mut engine: Ordered| {
        for number in 0..POSTS {
            engine.wait_for_flag(PHASE, number + 1);
            assert_eq!(engine.read(number), number);
            engine.signal(Targets::One(0), by, number + 1).unwrap();
        }
    };
    pair(without, owner, reader);
}

const FULL: [Without; 2] = [Nothing; 2];

#[test]
fn no_post_is_replaced_before_it_is_read() {
    broadcasts(FULL);
}

#[test]
fn no_message_is_replaced_before_it_is_read() {
    messages(FULL);
}

#[test]
fn no_slot_is_written_before_it_is_read() {
    rounds(FINISHED, FULL);
}

#[test]
fn no_slot_is_written_before_the_next_operation() {
    rounds(PHASE, FULL);
}

/// Each test takes one barrier away, of the first side or of the second, and must fail.
mod without {
    use super::Without::{Acquire, Nothing, Release};
    use super::{FINISHED, PHASE, broadcasts, messages, rounds};

    macro_rules! must_fail {
        ($($name:ident: $run:ident $([$by:expr])? ($first:expr, $second:expr);)*) => {$(
            #[test]
            #[should_panic]
            fn $name() {
                $run($($by,)? [$first, $second]);
            }
        )*};
    }

    must_fail! {
        release_of_post: broadcasts(Release, Nothing);
        acquire_of_post: broadcasts(Nothing, Acquire);
        release_of_next_post: broadcasts(Nothing, Release);
        acquire_of_room: broadcasts(Acquire, Nothing);
        release_of_message: messages(Release, Nothing);
        acquire_of_message: messages(Nothing, Acquire);
        release_of_read: messages(Nothing, Release);
        acquire_of_read: messages(Acquire, Nothing);
        release_of_flag: rounds[FINISHED](Release, Nothing);
        acquire_of_flag: rounds[FINISHED](Nothing, Acquire);
        release_of_finished: rounds[FINISHED](Nothing, Release);
        acquire_of_finished: rounds[FINISHED](Acquire, Nothing);
        release_of_later_flag: rounds[PHASE](Nothing, Release);
        acquire_of_later_flag: rounds[PHASE](Acquire, Nothing);
    }
}
