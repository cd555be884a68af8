//! The orders of Documentation/memory-model.md under a model checker.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p stepccl-device --release --test loom`. Entries are cells
//! that the checker watches: an entry touched by both sides at once fails the test, and so does a
//! wake-up that is lost, as a deadlock. The tests in `without` take one barrier away at a time and
//! expect to fail: so the model would notice if the code lacked it.
#![cfg(loom)]

use std::sync::Arc;
use std::time::Duration;

use dma_engine_uapi::ring::RingOffsets;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering, fence};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use stepccl_device::{
    Client, CompletionEntry, CompletionQueue, Descriptor, Doorbell, Push, RingError, RingLayout,
    RingMemory, Service, Side, SubmissionEntry, SubmissionQueue, Taken, Word,
};

const LIMIT: Duration = Duration::MAX;

/// A barrier that one side does without.
#[derive(Clone, Copy, PartialEq)]
enum Without {
    Nothing,
    Release(Word),
    Acquire(Word),
    Fence,
}

/// The ring as one side sees it.
struct End {
    ring: Arc<ModelRing>,
    without: Without,
}

struct ModelRing {
    words: [AtomicU32; 7],
    submissions: Vec<UnsafeCell<[u64; 8]>>,
    completions: Vec<UnsafeCell<[u64; 2]>>,
    bells: [AtomicU32; 2],
    asleep: Mutex<()>,
    wake: [Condvar; 2],
}

// SAFETY:
// - The cells are those of the checker, which fails the test on a read or write of one that is
//   not ordered with every other write.
unsafe impl Sync for ModelRing {}
// SAFETY:
// - Nothing in it belongs to a thread.
unsafe impl Send for ModelRing {}

impl ModelRing {
    /// The ends of the client and of the service.
    fn ends(
        (sq, cq, start): (u32, u32, u32),
        without: [Without; 2],
    ) -> ([Arc<End>; 2], RingLayout) {
        let (offsets, bytes) = RingOffsets::lay_out(sq, cq).unwrap();
        let layout = RingLayout::new(offsets, sq, cq, u64::from(bytes)).unwrap();
        let flags = [Word::SqFlags, Word::CqFlags, Word::CqStalls];
        let words = Word::ALL.map(|word| if flags.contains(&word) { 0 } else { start });
        let ring = Self {
            words: words.map(AtomicU32::new),
            submissions: (0..sq).map(|_| UnsafeCell::new([0; 8])).collect(),
            completions: (0..cq).map(|_| UnsafeCell::new([0; 2])).collect(),
            bells: [AtomicU32::new(0), AtomicU32::new(0)],
            asleep: Mutex::new(()),
            wake: [Condvar::new(), Condvar::new()],
        };
        let ring = Arc::new(ring);
        (without.map(|without| Arc::new(End { ring: ring.clone(), without })), layout)
    }
}

fn read<T: Copy>(cell: &UnsafeCell<T>) -> T {
    cell.with(|value| {
        // SAFETY:
        // - The pointer is that of a live cell; the checker fails the test if it is written now.
        unsafe { *value }
    })
}

fn write<T>(cell: &UnsafeCell<T>, new: T) {
    cell.with_mut(|value| {
        // SAFETY:
        // - The pointer is that of a live cell; the checker fails the test if it is used now.
        unsafe { *value = new }
    });
}

impl RingMemory for End {
    fn load_relaxed(&self, word: Word) -> Result<u32, RingError> {
        Ok(self.ring.words[word as usize].load(Ordering::Relaxed))
    }
    fn load_acquire(&self, word: Word) -> Result<u32, RingError> {
        if self.without == Without::Acquire(word) {
            return self.load_relaxed(word);
        }
        Ok(self.ring.words[word as usize].load(Ordering::Acquire))
    }
    fn store_relaxed(&self, word: Word, value: u32) -> Result<(), RingError> {
        self.ring.words[word as usize].store(value, Ordering::Relaxed);
        Ok(())
    }
    fn store_release(&self, word: Word, value: u32) -> Result<(), RingError> {
        if self.without == Without::Release(word) {
            return self.store_relaxed(word, value);
        }
        self.ring.words[word as usize].store(value, Ordering::Release);
        Ok(())
    }
    fn fence(&self) {
        if self.without != Without::Fence {
            fence(Ordering::SeqCst);
        }
    }
    fn read_submission(&self, slot: u32) -> Result<[u64; 8], RingError> {
        Ok(read(&self.ring.submissions[slot as usize]))
    }
    fn write_submission(&self, slot: u32, words: [u64; 8]) -> Result<(), RingError> {
        write(&self.ring.submissions[slot as usize], words);
        Ok(())
    }
    fn read_completion(&self, slot: u32) -> Result<[u64; 2], RingError> {
        Ok(read(&self.ring.completions[slot as usize]))
    }
    fn write_completion(&self, slot: u32, words: [u64; 2]) -> Result<(), RingError> {
        write(&self.ring.completions[slot as usize], words);
        Ok(())
    }
}

impl Doorbell for End {
    fn bell(&self, side: Side) -> u32 {
        self.ring.bells[side as usize].load(Ordering::Acquire)
    }
    fn ring(&self, side: Side) -> Result<(), RingError> {
        self.ring.bells[side as usize].fetch_add(1, Ordering::Release);
        let _asleep = self.ring.asleep.lock().unwrap();
        self.ring.wake[side as usize].notify_all();
        Ok(())
    }
    /// Like the kernel's futex: looks at the word and goes to sleep as one step.
    fn sleep(&self, side: Side, seen: u32, _: Duration) -> Result<(), RingError> {
        let asleep = self.ring.asleep.lock().unwrap();
        if self.ring.bells[side as usize].load(Ordering::Acquire) == seen {
            drop(self.ring.wake[side as usize].wait(asleep).unwrap());
        }
        Ok(())
    }
    fn other_gone(&self, _: Side) -> bool {
        false
    }
}

fn entry(number: u64) -> SubmissionEntry {
    SubmissionEntry {
        desc: Descriptor { src_addr: !number, length: number as u32, ..Descriptor::default() },
        user_data: number,
        signal_value: number << 32,
        ..SubmissionEntry::default()
    }
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

const FULL: [Without; 2] = [Without::Nothing; 2];

/// SQ tail and SQ head, over the wrap of the slots and of the indices.
fn entries(without: [Without; 2]) {
    model(move || {
        let start = u32::MAX - 1;
        let ([near, far], layout) = ModelRing::ends((2, 4, start), without);
        let mut service = Service::new(far, &layout, start).unwrap();
        let mut client = SubmissionQueue::new(near, 2, start).unwrap();
        let taker = thread::spawn(move || {
            for number in 0..4 {
                loop {
                    match service.take().unwrap() {
                        Taken::Entry(found) => break assert_eq!(found, entry(number)),
                        Taken::Empty => thread::yield_now(),
                        Taken::NoRoom => panic!("four completion slots for four entries"),
                    }
                }
            }
        });
        for number in 0..4 {
            while !client.push(&entry(number)).unwrap() {
                thread::yield_now();
            }
            client.publish().unwrap();
        }
        taker.join().unwrap();
    });
}

/// CQ tail and CQ head, over the wrap of the slots and of the indices.
fn completions(without: [Without; 2]) {
    model(move || {
        let start = u32::MAX - 1;
        let ([near, far], layout) = ModelRing::ends((4, 2, start), without);
        let mut submissions = SubmissionQueue::new(near.clone(), 4, start).unwrap();
        let mut service = Service::new(far, &layout, start).unwrap();
        let mut completions = CompletionQueue::new(near, 2, start).unwrap();
        for number in 0..4 {
            assert!(submissions.push(&entry(number)).unwrap());
        }
        assert_eq!(submissions.publish().unwrap(), 4);
        let worker = thread::spawn(move || {
            let mut done = 0;
            while done < 4 {
                match service.take().unwrap() {
                    Taken::Entry(entry) => {
                        let data = entry.user_data;
                        service.complete(&CompletionEntry::moved(data, data as u32)).unwrap();
                        done += 1;
                    }
                    Taken::NoRoom => thread::yield_now(),
                    Taken::Empty => panic!("four entries were published"),
                }
            }
        });
        for number in 0..4 {
            loop {
                match completions.pop().unwrap() {
                    Some(found) => {
                        break assert_eq!(found, CompletionEntry::moved(number, number as u32));
                    }
                    None => thread::yield_now(),
                }
            }
        }
        worker.join().unwrap();
    });
}

/// Both wake-up flags: a lost wake-up is a deadlock, which the checker reports.
fn wakeups(without: [Without; 2]) {
    model(move || {
        let ([near, far], layout) = ModelRing::ends((1, 2, 0), without);
        let mut client = Client::new(near, &layout, 0).unwrap();
        let mut service = Service::new(far, &layout, 0).unwrap();
        let worker = thread::spawn(move || {
            let mut done = 0;
            while done < 2 {
                match service.take().unwrap() {
                    Taken::Entry(entry) => {
                        service.complete(&CompletionEntry::moved(entry.user_data, 1)).unwrap();
                        service.notify().unwrap();
                        done += 1;
                    }
                    Taken::Empty => drop(service.wait(LIMIT).unwrap()),
                    Taken::NoRoom => panic!("the client keeps to the completion slots"),
                }
            }
        });
        for number in 0..2 {
            assert_eq!(client.push(&entry(number)).unwrap(), Push::Queued);
            client.publish().unwrap();
            let completion = loop {
                match client.pop().unwrap() {
                    Some(completion) => break completion,
                    None => drop(client.wait(LIMIT).unwrap()),
                }
            };
            assert_eq!(completion.user_data, number);
        }
        worker.join().unwrap();
    });
}

/// A client that sees the ring failed has seen every completion before.
fn failure(without: [Without; 2]) {
    model(move || {
        let ([near, far], layout) = ModelRing::ends((1, 2, 0), without);
        let mut client = Client::new(near, &layout, 0).unwrap();
        let mut service = Service::new(far.clone(), &layout, 0).unwrap();
        assert_eq!(client.push(&entry(5)).unwrap(), Push::Queued);
        client.publish().unwrap();
        let worker = thread::spawn(move || {
            assert_eq!(service.take().unwrap(), Taken::Entry(entry(5)));
            service.complete(&CompletionEntry::moved(5, 1)).unwrap();
            far.store_relaxed(Word::SqTail, 77).unwrap();
            assert!(matches!(service.take(), Err(RingError::BadIndex { .. })));
        });
        loop {
            match client.pop() {
                Ok(Some(completion)) => break assert_eq!(completion.user_data, 5),
                Ok(None) => thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
        worker.join().unwrap();
        assert_eq!(client.pop(), Err(RingError::Failed));
    });
}

#[test]
fn entries_arrive_whole_and_in_order() {
    entries(FULL);
}

#[test]
fn completions_arrive_whole_and_in_order() {
    completions(FULL);
}

#[test]
fn no_wakeup_is_lost() {
    wakeups(FULL);
}

#[test]
fn completions_before_a_failure_are_read() {
    failure(FULL);
}

/// Each test takes one barrier away, of the client or of the service, and must fail.
mod without {
    use super::Without::{Acquire, Fence, Nothing, Release};
    use super::{Word, completions, entries, failure, wakeups};

    macro_rules! must_fail {
        ($($name:ident: $run:ident($client:expr, $service:expr);)*) => {$(
            #[test]
            #[should_panic]
            fn $name() {
                $run([$client, $service]);
            }
        )*};
    }

    must_fail! {
        release_of_sq_tail: entries(Release(Word::SqTail), Nothing);
        acquire_of_sq_tail: entries(Nothing, Acquire(Word::SqTail));
        release_of_sq_head: entries(Nothing, Release(Word::SqHead));
        acquire_of_sq_head: entries(Acquire(Word::SqHead), Nothing);
        release_of_cq_tail: completions(Nothing, Release(Word::CqTail));
        acquire_of_cq_tail: completions(Acquire(Word::CqTail), Nothing);
        release_of_cq_head: completions(Release(Word::CqHead), Nothing);
        acquire_of_cq_head: completions(Nothing, Acquire(Word::CqHead));
        fence_of_the_client: wakeups(Fence, Nothing);
        fence_of_the_service: wakeups(Nothing, Fence);
        release_of_sq_flags: failure(Nothing, Release(Word::SqFlags));
        acquire_of_sq_flags: failure(Acquire(Word::SqFlags), Nothing);
    }
}
