//! The orders of Documentation/memory-model.md between ranks, under a model checker.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p stepccl-engine-host --release --test loom`. A wake-up that
//! is lost fails a test as a deadlock, and memory that two ranks use at once as a race. The tests in
//! `without` take one barrier away at a time and expect to fail: so the model would notice if the
//! code lacked it.
#![cfg(loom)]

use std::sync::Arc;
use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use stepccl_engine::{Look, RankState};
use stepccl_engine_host::models::{
    LaneWords, PostWords, announce, fall_asleep, look, nudge, push, pushes, runs, show, sleep,
    wake_sleepers, was_readable,
};
use stepccl_memory::MemoryError;

const LIMIT: Duration = Duration::MAX;
const FAILED: RankState = RankState::Failed { culprit: 0 };
/// Rank that sleeps, or gives up.
const RANK: u32 = 0;

/// A barrier that one side does without.
#[derive(Clone, Copy, PartialEq)]
enum Without {
    Nothing,
    Fence,
    DoorbellRelease,
    DoorbellAcquire,
    StateRelease,
    StateAcquire,
    PushingRelease,
    PushingAcquire,
    NumberRelease,
    NumberAcquire,
}
use Without::Nothing;

/// The segment of a rank, and memory that the words of it order.
struct Segment {
    sleeping: AtomicU32,
    doorbell: AtomicU32,
    flag: AtomicU64,
    state: AtomicU64,
    pushing: AtomicU64,
    /// Words of a post: number, and two that say what was called.
    post: [AtomicU64; 3],
    data: UnsafeCell<u64>,
    asleep: Mutex<()>,
    woken: Condvar,
}

// SAFETY:
// - The cell is that of the checker, which fails the test on a read or write of it that is not
//   ordered with every other write.
unsafe impl Sync for Segment {}
// SAFETY:
// - Nothing in it belongs to a thread.
unsafe impl Send for Segment {}

impl Segment {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            sleeping: AtomicU32::new(0),
            doorbell: AtomicU32::new(0),
            flag: AtomicU64::new(0),
            state: AtomicU64::new(RUNNING),
            pushing: AtomicU64::new(0),
            post: [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)],
            data: UnsafeCell::new(0),
            asleep: Mutex::new(()),
            woken: Condvar::new(),
        })
    }

    fn lane(self: &Arc<Self>, without: Without) -> Lane {
        Lane { segment: self.clone(), without }
    }

    fn read(&self) -> u64 {
        self.data.with(|data| {
            // SAFETY:
            // - The pointer is that of a live cell; the checker fails the test if it is written now.
            unsafe { *data }
        })
    }

    fn write(&self, value: u64) {
        self.data.with_mut(|data| {
            // SAFETY:
            // - The pointer is that of a live cell; the checker fails the test if it is used now.
            unsafe { *data = value }
        });
    }
}

/// What a rank that runs has in its state.
const RUNNING: u64 = 0;

/// The segment as one side sees it.
struct Lane {
    segment: Arc<Segment>,
    without: Without,
}

impl Lane {
    fn order(&self, without: Without, order: Ordering) -> Ordering {
        if self.without == without { Ordering::Relaxed } else { order }
    }
}

impl LaneWords for Lane {
    fn is_sleeping(&self) -> bool {
        self.segment.sleeping.load(Ordering::Relaxed) != 0
    }
    fn set_sleeping(&self, sleeping: bool) {
        self.segment.sleeping.store(u32::from(sleeping), Ordering::Relaxed);
    }
    fn doorbell(&self) -> u32 {
        self.segment.doorbell.load(self.order(Without::DoorbellAcquire, Ordering::Acquire))
    }
    fn move_doorbell(&self) {
        let order = self.order(Without::DoorbellRelease, Ordering::Release);
        self.segment.doorbell.fetch_add(1, order);
    }
    fn wake(&self) -> Result<(), MemoryError> {
        let _asleep = self.segment.asleep.lock().unwrap();
        self.segment.woken.notify_all();
        Ok(())
    }
    /// Like the kernel's futex: looks at the word and goes to sleep as one step.
    fn wait(&self, seen: u32, _: Duration) -> Result<(), MemoryError> {
        let asleep = self.segment.asleep.lock().unwrap();
        if self.segment.doorbell.load(Ordering::Relaxed) == seen {
            drop(self.segment.woken.wait(asleep).unwrap());
        }
        Ok(())
    }
    fn state(&self) -> u64 {
        self.segment.state.load(self.order(Without::StateAcquire, Ordering::Acquire))
    }
    fn set_state(&self, state: u64) {
        self.segment.state.store(state, self.order(Without::StateRelease, Ordering::Release));
    }
    fn pushing(&self) -> u64 {
        self.segment.pushing.load(self.order(Without::PushingAcquire, Ordering::Acquire))
    }
    fn begin_push(&self, pushing: u64) {
        self.segment.pushing.store(pushing, Ordering::Relaxed);
    }
    fn end_push(&self) {
        self.segment.pushing.store(0, self.order(Without::PushingRelease, Ordering::Release));
    }
    fn fence(&self) {
        if self.without != Without::Fence {
            fence(Ordering::SeqCst);
        }
    }
}

impl PostWords for Lane {
    fn load_relaxed(&self, index: usize) -> u64 {
        self.segment.post[index].load(Ordering::Relaxed)
    }
    fn load_acquire(&self, index: usize) -> u64 {
        self.segment.post[index].load(self.order(Without::NumberAcquire, Ordering::Acquire))
    }
    /// Data is read by bulk copies, which order nothing.
    fn store_relaxed(&self, index: usize, value: u64) {
        match self.segment.post.get(index) {
            Some(word) => word.store(value, Ordering::Relaxed),
            None => self.segment.write(value),
        }
    }
    fn store_release(&self, index: usize, value: u64) {
        let order = self.order(Without::NumberRelease, Ordering::Release);
        self.segment.post[index].store(value, order);
    }
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

/// Park until the flag has a value, as an executor does. The flag orders nothing here.
fn park_until(own: &Lane, value: u64) {
    let mut seen = own.doorbell();
    let flag = || own.segment.flag.load(Ordering::Relaxed);
    while flag() < value {
        let mut asleep = fall_asleep(own, seen);
        asleep.awake = asleep.awake || flag() >= value;
        let (now, slept) = sleep(own, &asleep, LIMIT);
        slept.unwrap();
        seen = now;
        // Whoever answers a ring finds what it was for at the first look.
        assert!(flag() >= u64::from(seen));
    }
}

/// A rank parks until another one has raised a flag, and then again.
fn signals([sleeper, signaller]: [Without; 2]) {
    model(move || {
        let segment = Segment::new();
        let far = segment.lane(signaller);
        let thread = thread::spawn(move || {
            for value in 1..=2 {
                far.segment.flag.store(value, Ordering::Relaxed);
                wake_sleepers(&far, [&far], || ()).unwrap();
            }
        });
        let own = segment.lane(sleeper);
        for value in 1..=2 {
            park_until(&own, value);
        }
        thread.join().unwrap();
    });
}

/// A rank parks until a thread of its process has done something and nudges it, and then again.
fn nudges([sleeper, waker]: [Without; 2]) {
    model(move || {
        let segment = Segment::new();
        let far = segment.lane(waker);
        let thread = thread::spawn(move || {
            for value in 1..=2 {
                far.segment.flag.store(value, Ordering::Relaxed);
                nudge(&far).unwrap();
            }
        });
        let own = segment.lane(sleeper);
        for value in 1..=2 {
            park_until(&own, value);
        }
        thread.join().unwrap();
    });
}

/// A rank gives up, waits for who writes and uses its memory again, beside a peer that writes there.
fn writes([gives_up, writer]: [Without; 2]) {
    model(move || {
        let (mine, theirs) = (Segment::new(), Segment::new());
        let (memory, far) = (mine.clone(), [theirs.lane(writer), mine.lane(writer)]);
        let thread = thread::spawn(move || {
            let [own, peer] = far;
            push(&own, &peer, RANK, || true, || memory.write(1));
        });
        let (own, peer) = (mine.lane(gives_up), theirs.lane(gives_up));
        announce(&own, FAILED);
        while pushes(&peer, RANK) {
            thread::yield_now();
        }
        mine.write(2);
        thread.join().unwrap();
    });
}

/// A rank gives up and uses its memory again, beside a peer that reads there: by the kernel, which
/// orders nothing.
fn reads([gives_up, reader]: [Without; 2]) {
    model(move || {
        let segment = Segment::new();
        let far = segment.lane(reader);
        let thread = thread::spawn(move || {
            let read = far.segment.flag.load(Ordering::Relaxed);
            if was_readable(&far, RANK) {
                assert_eq!(read, 0, "it is that of the rank's next use");
            }
        });
        announce(&segment.lane(gives_up), FAILED);
        segment.flag.store(1, Ordering::Relaxed);
        thread.join().unwrap();
    });
}

/// Who sees that a rank has failed reads why.
fn reasons([gives_up, peer]: [Without; 2]) {
    model(move || {
        let segment = Segment::new();
        let far = segment.lane(peer);
        let thread = thread::spawn(move || {
            if !runs(&far, RANK) {
                assert_eq!(far.segment.read(), 7);
            }
        });
        segment.write(7);
        announce(&segment.lane(gives_up), FAILED);
        thread.join().unwrap();
    });
}

/// A post, and another one at its place when the first was read.
fn posts([owner, peer]: [Without; 2]) {
    model(move || {
        let segment = Segment::new();
        let far = segment.lane(peer);
        let thread = thread::spawn(move || {
            for number in 0..2 {
                let words = loop {
                    match look(&far, number) {
                        Look::Here(words) => break words,
                        Look::Absent => thread::yield_now(),
                        Look::Past => panic!("nobody has read it"),
                    }
                };
                assert_eq!((words, far.segment.read()), ([number, !number], number + 7));
                far.segment.flag.store(number + 1, Ordering::Release);
            }
        });
        let own = segment.lane(owner);
        for number in 0..2 {
            while segment.flag.load(Ordering::Acquire) < number {
                thread::yield_now();
            }
            show(&own, number, [number, !number], &[number + 7]);
        }
        thread.join().unwrap();
    });
}

const FULL: [Without; 2] = [Nothing; 2];

#[test]
fn no_signal_is_slept_through() {
    signals(FULL);
}

#[test]
fn no_nudge_is_slept_through() {
    nudges(FULL);
}

#[test]
fn nobody_writes_memory_that_was_given_back() {
    writes(FULL);
}

#[test]
fn nobody_takes_memory_that_is_used_again_for_what_it_was() {
    reads(FULL);
}

#[test]
fn a_reason_is_whole() {
    reasons(FULL);
}

#[test]
fn a_post_is_whole() {
    posts(FULL);
}

/// Each test takes one barrier away, of the first side or of the second, and must fail.
mod without {
    use super::Without::{
        DoorbellAcquire, DoorbellRelease, Fence, Nothing, NumberAcquire, NumberRelease,
        PushingAcquire, PushingRelease, StateAcquire, StateRelease,
    };
    use super::{nudges, posts, reads, reasons, signals, writes};

    macro_rules! must_fail {
        ($($name:ident: $run:ident($first:expr, $second:expr);)*) => {$(
            #[test]
            #[should_panic]
            fn $name() {
                $run([$first, $second]);
            }
        )*};
    }

    must_fail! {
        fence_of_sleeper: signals(Fence, Nothing);
        fence_of_signaller: signals(Nothing, Fence);
        acquire_of_ring: signals(DoorbellAcquire, Nothing);
        fence_of_nudged: nudges(Fence, Nothing);
        fence_of_nudge: nudges(Nothing, Fence);
        acquire_of_nudge: nudges(DoorbellAcquire, Nothing);
        release_of_nudge: nudges(Nothing, DoorbellRelease);
        fence_of_who_gives_up: writes(Fence, Nothing);
        fence_of_writer: writes(Nothing, Fence);
        acquire_of_pushing: writes(PushingAcquire, Nothing);
        release_of_pushing: writes(Nothing, PushingRelease);
        fence_before_reuse: reads(Fence, Nothing);
        fence_of_reader: reads(Nothing, Fence);
        release_of_state: reasons(StateRelease, Nothing);
        acquire_of_state: reasons(Nothing, StateAcquire);
        release_of_number: posts(NumberRelease, Nothing);
        acquire_of_number: posts(Nothing, NumberAcquire);
    }
}
