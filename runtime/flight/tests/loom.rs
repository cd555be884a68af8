//! The orders of Documentation/memory-model.md, "Flight record", under a model checker.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p stepccl-flight --release --test loom`. A model has the few
//! words of a record that matter to it; the others are as in a fresh record. The tests in `without`
//! take one barrier away at a time and expect to fail: so the model would notice if the code lacked it.
#![cfg(loom)]

use std::cell::Cell;
use std::sync::atomic::{AtomicU32 as Count, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;
use stepccl_flight::layout::{self, header, record};
use stepccl_flight::{
    About, AtomicWords, Called, ClockKind, FormatError, Phase, RecordMemory, Recorder, Snapshot,
    Source, Started, Vocabulary, Writer,
};

const RECORDS: usize = layout::MIN_RECORDS;
/// Two operations with the same place in the ring.
const OLD: u64 = RECORDS as u64;
const NEW: u64 = 2 * OLD;
/// First place behind the ring.
const SPARE: u32 = RECORDS as u32;

/// A barrier that one side does without.
#[derive(Clone, Copy, PartialEq)]
enum Without {
    Nothing,
    /// Release of the stamp with this phase.
    Stamp(Phase),
    Release(usize),
    Acquire,
    /// The exchange is a load and a store.
    Exchange,
    Fence,
    /// The fence of a reader with this number.
    ReadersFence(u32),
}
use Without::Nothing;

/// A part of the record: its header, or a place.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Header,
    Place(u32),
}

impl Part {
    fn at(self) -> usize {
        match self {
            Self::Header => 0,
            Self::Place(place) => layout::record_at(place as usize),
        }
    }
}

enum Word {
    Atomic(Turns),
    /// Has no reader beside its writers, who must come one after the other.
    Cell(UnsafeCell<u64>),
}

/// A word, and a second one that each access stores to first, which orders nothing because nobody
/// loads it. Of all accesses to a word the checker remembers the last: if that is a load by who is to
/// store, it tries no other order of the store and the loads before. Stores it tries in any order.
struct Turns {
    word: AtomicU64,
    turn: AtomicU64,
}

impl Turns {
    fn new() -> Self {
        Self { word: AtomicU64::new(0), turn: AtomicU64::new(0) }
    }

    fn word(&self) -> &AtomicU64 {
        self.turn.store(0, Ordering::Relaxed);
        &self.word
    }
}

/// The words of a model.
struct Record {
    words: Vec<(Part, usize, Word)>,
    /// Operations that found no place.
    lost: Count,
}

// SAFETY:
// - The cells are those of the checker, which fails the test on a write of one that is not ordered
//   with every other write.
unsafe impl Sync for Record {}
// SAFETY:
// - Nothing in it belongs to a thread.
unsafe impl Send for Record {}

impl Record {
    fn new(atomics: &[(Part, usize)], cells: &[(Part, usize)]) -> Arc<Self> {
        let atomics = atomics.iter().map(|(part, at)| (*part, *at, Word::Atomic(Turns::new())));
        let cells = cells.iter().map(|(part, at)| (*part, *at, Word::Cell(UnsafeCell::new(0))));
        Arc::new(Self { words: atomics.chain(cells).collect(), lost: Count::new(0) })
    }

    /// With words of the place of both operations.
    fn of(words: &[usize]) -> Arc<Self> {
        let words: Vec<_> = words.iter().map(|at| (Part::Place(0), *at)).collect();
        Self::new(&words, &[])
    }

    fn word(&self, part: Part, at: usize) -> Option<&Word> {
        self.words.iter().find(|word| word.0 == part && word.1 == at).map(|word| &word.2)
    }

    /// One that writes operation `sequence`.
    fn writer(self: &Arc<Self>, sequence: u64, without: Without) -> Writer<End> {
        let end = End { record: self.clone(), sequence, without };
        Writer::new(end, ClockKind::Monotonic, RECORDS)
    }

    fn reader(self: &Arc<Self>, without: Without) -> Reader {
        Reader { record: self.clone(), without, fences: Cell::new(0) }
    }
}

/// The record as one that writes an operation sees it.
struct End {
    record: Arc<Record>,
    sequence: u64,
    without: Without,
}

#[derive(Clone, Copy)]
struct Words<'a> {
    end: &'a End,
    part: Part,
}

impl Words<'_> {
    fn store(self, at: usize, value: u64, order: Ordering) {
        // Whose times these are is to be seen from them.
        let is_own = matches!(at, record::CALLED | record::STARTED | record::ENDED)
            || at == record::COLLECTIVE && value != layout::NONE;
        let value = if self.part != Part::Header && is_own { self.end.sequence } else { value };
        match self.end.record.word(self.part, at) {
            Some(Word::Atomic(word)) => word.word().store(value, order),
            Some(Word::Cell(cell)) => cell.with_mut(|word| {
                // SAFETY:
                // - The pointer is that of a live cell; the checker fails the test if it is used now.
                unsafe { *word = value }
            }),
            None => {}
        }
    }

    fn load(self, at: usize, order: Ordering) -> u64 {
        match self.end.record.word(self.part, at) {
            Some(Word::Atomic(word)) => word.word().load(order),
            // A place that no model has is that of an operation which has not ended.
            None if self.part != Part::Header && at == record::STAMP => {
                7 << 3 | Phase::Running.number()
            }
            _ => 0,
        }
    }
}

impl AtomicWords for Words<'_> {
    fn load_relaxed(self, at: usize) -> u64 {
        self.load(at, Ordering::Relaxed)
    }
    fn load_acquire(self, at: usize) -> u64 {
        let weak = self.end.without == Without::Acquire;
        self.load(at, if weak { Ordering::Relaxed } else { Ordering::Acquire })
    }
    fn store_relaxed(self, at: usize, value: u64) {
        self.store(at, value, Ordering::Relaxed);
    }
    fn store_release(self, at: usize, value: u64) {
        let weak = match self.end.without {
            Without::Stamp(phase) => at == record::STAMP && value & 7 == phase.number(),
            Without::Release(word) => at == word,
            _ => false,
        };
        self.store(at, value, if weak { Ordering::Relaxed } else { Ordering::Release });
    }
    fn exchange_acquire(self, at: usize, old: u64, new: u64) -> bool {
        let Some(Word::Atomic(word)) = self.end.record.word(self.part, at) else { return false };
        if self.end.without == Without::Exchange {
            let is_old = word.word().load(Ordering::Acquire) == old;
            if is_old {
                word.word().store(new, Ordering::Relaxed);
            }
            return is_old;
        }
        let weak = self.end.without == Without::Acquire;
        let order = if weak { Ordering::Relaxed } else { Ordering::Acquire };
        word.word().compare_exchange(old, new, order, Ordering::Relaxed).is_ok()
    }
    fn add(self, at: usize, more: u64) {
        assert_eq!((self.part, at, more), (Part::Header, header::LOST, 1));
        self.end.record.lost.fetch_add(1, SeqCst);
    }
}

impl RecordMemory for End {
    type Header<'a> = Words<'a>;
    type Record<'a> = Words<'a>;

    fn header(&self) -> Words<'_> {
        Words { end: self, part: Part::Header }
    }
    fn record(&self, place: u32) -> Option<Words<'_>> {
        Some(Words { end: self, part: Part::Place(place) })
    }
    fn fence_release(&self) {
        if self.without != Without::Fence {
            fence(Ordering::Release);
        }
    }
}

/// Another process that reads.
struct Reader {
    record: Arc<Record>,
    without: Without,
    fences: Cell<u32>,
}

impl Source for Reader {
    fn read(&mut self, at: usize, to: &mut [u8]) -> bool {
        to.copy_from_slice(&fresh()[at..at + to.len()]);
        for (part, word, value) in &self.record.words {
            let place = (part.at() + word * 8).checked_sub(at);
            if let (Some(place), Word::Atomic(value)) = (place, value)
                && let Some(to) = to.get_mut(place..place + 8)
            {
                to.copy_from_slice(&value.word().load(Ordering::Relaxed).to_ne_bytes());
            }
        }
        true
    }
    fn fence(&self) {
        let number = self.fences.replace(self.fences.get() + 1);
        if self.without != Without::ReadersFence(number) {
            fence(Ordering::SeqCst);
        }
    }
}

fn about() -> About<'static> {
    let vocabulary = Vocabulary::default();
    About { communicator: "model", job: 1, rank: 0, ranks: 2, engine: "none", vocabulary }
}

/// The bytes of a record without operations.
fn fresh() -> &'static [u8] {
    static FRESH: OnceLock<Vec<u8>> = OnceLock::new();
    FRESH.get_or_init(|| {
        let mut bytes = vec![0; layout::file_bytes(RECORDS)];
        assert!(Recorder::new(&about(), RECORDS).unwrap().copy_out(&mut bytes));
        bytes
    })
}

fn called(sequence: u64) -> Called {
    Called {
        kind: 1,
        dtype: 0,
        op: 0,
        path: 0,
        with: layout::NO_RANK,
        tag: 0,
        sequence,
        is_next_collective: false,
        bytes: sequence,
        count: 0,
    }
}

fn details(sequence: u64) -> Started {
    Started { path: 0, algorithm: 0, depth: 0, page_bytes: sequence, lane: 0 }
}

/// All of an operation, queued first.
fn perform(record: &Arc<Record>, sequence: u64) {
    let writer = record.writer(sequence, Nothing);
    writer.begin(&called(sequence), Phase::Queued);
    writer.is_next_collective(sequence);
    writer.start(sequence, &details(sequence));
    writer.end(sequence, true);
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

/// Look once, while others write: each operation that is seen has words of its own only.
fn look(record: &Arc<Record>, without: Without) {
    let has = |word| record.word(Part::Place(0), word).is_some();
    let snapshot = Snapshot::take(fresh().len(), record.reader(without)).unwrap();
    for found in snapshot.operations {
        let own = found.sequence;
        assert!(own == OLD || own == NEW, "{found:?}");
        if has(record::BYTES) {
            assert_eq!(found.bytes, own);
        }
        if has(record::ENDED) {
            assert!(found.ended.is_none_or(|ended| ended == own), "{found:?}");
        }
        if has(record::COLLECTIVE) {
            assert!(found.collective.is_none_or(|number| number == own), "{found:?}");
        }
        if has(record::PAGE) {
            assert!(found.details.is_none_or(|details| details.page_bytes == own), "{found:?}");
        }
        if has(record::AWAITED) {
            assert!(found.awaited.is_none_or(|ranks| ranks == (own as u32, 1)), "{found:?}");
        }
    }
}

/// A place is used again by one thread, beside a reader.
fn turns([writer, reader]: [Without; 2]) {
    model(move || {
        let record = Record::of(&[record::STAMP, record::BYTES, record::ENDED]);
        perform(&record, OLD);
        let far = record.clone();
        let thread = thread::spawn(move || {
            let writer = far.writer(NEW, writer);
            writer.begin(&called(NEW), Phase::Running);
            writer.end(NEW, true);
        });
        look(&record, reader);
        thread.join().unwrap();
    });
}

/// What a second thread does with an operation that a first one has begun.
#[derive(Clone, Copy)]
enum Then {
    Number,
    Start,
    Wait,
    End,
}

/// An operation is begun by a thread and goes on in another, beside a reader. The place was that of
/// an earlier operation.
fn handed_over(then: Then, [second, reader]: [Without; 2]) {
    model(move || {
        let (phase, words): (_, &[_]) = match then {
            Then::Number => (Phase::Queued, &[record::COLLECTIVE]),
            Then::Start => (Phase::Queued, &[record::WHAT, record::PAGE]),
            Then::Wait => (Phase::Running, &[record::WHAT, record::AWAITED]),
            Then::End => (Phase::Running, &[record::ENDED]),
        };
        let record = Record::of(&[&[record::STAMP], words].concat());
        if let Then::Wait = then {
            let writer = record.writer(OLD, Nothing);
            writer.begin(&called(OLD), phase);
            writer.waits(OLD, OLD as u32, 1);
        } else {
            perform(&record, OLD);
        }
        let near = record.clone();
        let first = thread::spawn(move || {
            if let Then::Wait = then {
                near.writer(OLD, Nothing).end(OLD, true);
            }
            near.writer(NEW, Nothing).begin(&called(NEW), phase);
            let next = thread::spawn(move || {
                let writer = near.writer(NEW, second);
                match then {
                    Then::Number => writer.is_next_collective(NEW),
                    Then::Start => writer.start(NEW, &details(NEW)),
                    Then::Wait => writer.waits(NEW, NEW as u32, 1),
                    Then::End => writer.end(NEW, true),
                }
            });
            next.join().unwrap();
        });
        look(&record, reader);
        first.join().unwrap();
    });
}

/// A place goes from an operation to one of another thread, which takes it as soon as it is free,
/// and else a spare one.
fn places([old, new]: [Without; 2]) {
    model(move || {
        let [first, spare] = [0, SPARE].map(Part::Place);
        let record = Record::new(
            &[(first, record::STAMP), (spare, record::STAMP)],
            &[(first, record::BYTES), (first, record::ENDED)],
        );
        record.writer(OLD, Nothing).begin(&called(OLD), Phase::Running);
        let far = record.clone();
        let thread = thread::spawn(move || far.writer(OLD, old).end(OLD, true));
        let writer = record.writer(NEW, new);
        writer.begin(&called(NEW), Phase::Running);
        writer.end(NEW, true);
        thread.join().unwrap();
        assert_eq!(record.lost.load(SeqCst), 0);
    });
}

/// Two operations want the one spare place, that of an operation which ends just then.
fn spares([old, new]: [Without; 2]) {
    model(move || {
        let part = Part::Place(SPARE);
        let record =
            Record::new(&[(part, record::STAMP)], &[(part, record::BYTES), (part, record::ENDED)]);
        record.writer(OLD, Nothing).begin(&called(OLD), Phase::Running);
        let ends = record.clone();
        let ends = thread::spawn(move || ends.writer(OLD, old).end(OLD, true));
        let perform = move |record: &Arc<Record>, sequence| {
            let writer = record.writer(sequence, new);
            writer.begin(&called(sequence), Phase::Running);
            writer.end(sequence, true);
        };
        let far = record.clone();
        let other = thread::spawn(move || perform(&far, NEW));
        perform(&record, NEW + OLD);
        ends.join().unwrap();
        other.join().unwrap();
    });
}

/// A reader finds the record while it is made.
fn making([writer, reader]: [Without; 2]) {
    model(move || {
        let words = [header::MAGIC, header::RANK].map(|at| (Part::Header, at));
        let record = Record::new(&words, &[]);
        let far = record.clone();
        let thread = thread::spawn(move || far.writer(0, writer).write_header(&about()));
        match Snapshot::take(fresh().len(), record.reader(reader)) {
            Ok(snapshot) => assert_eq!(snapshot.header.ranks, 2),
            Err(FormatError::Magic { found }) => assert_eq!(found, 0),
            Err(error) => panic!("{error}"),
        }
        thread.join().unwrap();
    });
}

const FULL: [Without; 2] = [Nothing; 2];

#[test]
fn a_place_is_used_again() {
    turns(FULL);
}

#[test]
fn another_thread_says_which_collective_it_is() {
    handed_over(Then::Number, FULL);
}

#[test]
fn another_thread_starts_it() {
    handed_over(Then::Start, FULL);
}

#[test]
fn another_thread_waits() {
    handed_over(Then::Wait, FULL);
}

#[test]
fn another_thread_ends_it() {
    handed_over(Then::End, FULL);
}

#[test]
fn a_place_goes_to_another_thread() {
    places(FULL);
}

#[test]
fn one_gets_the_spare_place() {
    spares(FULL);
}

#[test]
fn a_header_is_whole_or_refused() {
    making(FULL);
}

/// Each test takes one barrier away, of the first side or of the second, and must fail.
mod without {
    use super::Without::{Acquire, Exchange, Fence, Nothing, ReadersFence, Release, Stamp};
    use super::{Phase, Then, handed_over, header, making, places, record, spares, turns};

    macro_rules! must_fail {
        ($($name:ident: $run:ident $([$then:expr])? ($first:expr, $second:expr);)*) => {$(
            #[test]
            #[should_panic]
            fn $name() {
                $run($($then,)? [$first, $second]);
            }
        )*};
    }

    must_fail! {
        release_of_magic: making(Release(header::MAGIC), Nothing);
        fence_behind_magic: making(Nothing, ReadersFence(0));
        fence_of_begin: turns(Fence, Nothing);
        stamp_of_begin: turns(Stamp(Phase::Running), Nothing);
        stamp_of_end: turns(Stamp(Phase::Done), Nothing);
        fence_behind_stamps: turns(Nothing, ReadersFence(1));
        fence_before_stamps: turns(Nothing, ReadersFence(2));
        release_of_collective: handed_over[Then::Number](Release(record::COLLECTIVE), Nothing);
        fence_of_start: handed_over[Then::Start](Fence, Nothing);
        stamp_of_start: handed_over[Then::Start](Stamp(Phase::Running), Nothing);
        release_of_awaited: handed_over[Then::Wait](Release(record::AWAITED), Nothing);
        release_of_awaits: handed_over[Then::Wait](Release(record::WHAT), Nothing);
        release_of_ended: handed_over[Then::End](Release(record::ENDED), Nothing);
        stamp_of_another_end: handed_over[Then::End](Stamp(Phase::Done), Nothing);
        release_of_place: places(Stamp(Phase::Done), Nothing);
        acquire_of_place: places(Nothing, Acquire);
        release_of_spare: spares(Stamp(Phase::Done), Nothing);
        acquire_of_spare: spares(Nothing, Acquire);
        exchange_of_spare: spares(Nothing, Exchange);
    }
}
