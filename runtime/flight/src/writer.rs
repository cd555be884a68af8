//! Changes of records, over any memory.
//!
//! A record has one writer after another: the thread that calls the operation, then the threads
//! that drive it, which hand it over under the locks of the communicator. The first word of a
//! record, its stamp, is written last in every change that readers must see whole.
//!
//! A thread that got a record from another one has seen that it was begun, but a reader that sees
//! only its stores has not: so the first store of each such change is ordered behind what this
//! thread knows. `Documentation/memory-model.md`, "Flight record", has each pair and its test.

use crate::layout::{self, SPARE_RECORDS, header, record};
use crate::phase::{PHASE_BITS, Stamp};
use crate::{About, AtomicWords, Called, ClockKind, Phase, RecordMemory, Started};

/// [`layout::AWAITS`] in the word that has the flags.
const AWAITS_BIT: u64 = u64::from_le_bytes([0, 0, 0, 0, 0, layout::AWAITS, 0, 0]);

/// Writes records of operations, which it finds by their numbers on the communicator.
#[derive(Debug)]
pub struct Writer<M> {
    memory: M,
    clock: ClockKind,
    mask: u64,
}

impl<M: RecordMemory> Writer<M> {
    /// Writer of a ring of `records` records, a power of two.
    pub const fn new(memory: M, clock: ClockKind, records: usize) -> Self {
        Self { memory, clock, mask: records as u64 - 1 }
    }

    /// Make the record one that readers accept.
    pub fn write_header(&self, about: &About<'_>) {
        about.write(self.memory.header(), self.mask as usize + 1, self.clock);
    }

    /// Its memory.
    #[inline]
    pub const fn memory(&self) -> &M {
        &self.memory
    }

    /// An operation was called, and waits or runs.
    #[inline]
    pub fn begin(&self, what: &Called, phase: Phase) {
        let Called { kind, dtype, op, path, with, tag, sequence, is_next_collective, bytes, count } =
            *what;
        let header = self.memory.header();
        header.store_relaxed(header::OPERATIONS, sequence + 1);
        let mut collective = layout::NONE;
        if is_next_collective {
            collective = header.load_relaxed(header::COLLECTIVES);
            header.store_relaxed(header::COLLECTIVES, collective + 1);
        }
        let Some(words) = self.place(sequence) else { return };
        let stamp = |phase| Stamp { sequence, phase }.word();
        words.store_relaxed(record::STAMP, stamp(Phase::Writing));
        // Who sees what follows also sees that the record is being written.
        self.memory.fence_release();
        let parts = [kind, dtype, op, path, layout::NO_WORD, 0, 0, 0];
        words.store_relaxed(record::COLLECTIVE, collective);
        words.store_relaxed(record::WHAT, u64::from_le_bytes(parts));
        words.store_relaxed(record::WITH, layout::pair(with, tag.cast_unsigned()));
        words.store_relaxed(record::BYTES, bytes);
        words.store_relaxed(record::COUNT, count);
        words.store_relaxed(record::CALLED, self.clock.ticks());
        words.store_release(record::STAMP, stamp(phase));
    }

    /// It is the next collective, unless it has a number. Only one thread at a time calls this.
    #[inline]
    pub fn is_next_collective(&self, sequence: u64) {
        if let Some(words) = self.own(sequence)
            && words.load_relaxed(record::COLLECTIVE) == layout::NONE
        {
            let header = self.memory.header();
            let number = header.load_relaxed(header::COLLECTIVES);
            header.store_relaxed(header::COLLECTIVES, number + 1);
            words.store_release(record::COLLECTIVE, number);
        }
    }

    /// Its turn has come, unless it came before.
    #[inline]
    pub fn start(&self, sequence: u64, what: &Started) {
        let queued = Stamp { sequence, phase: Phase::Queued }.word();
        let Some(words) = self.own(sequence) else { return };
        if words.load_relaxed(record::STAMP) != queued {
            return;
        }
        let Started { path, algorithm, depth, page_bytes, lane } = *what;
        let old = words.load_relaxed(record::WHAT).to_le_bytes();
        // Another thread may have begun it.
        self.memory.fence_release();
        words.store_relaxed(record::STARTED, self.clock.ticks());
        words.store_relaxed(record::PAGE, page_bytes);
        words.store_relaxed(record::AWAITED, 0);
        words.store_relaxed(record::LANE, u64::from(lane));
        let [low, high] = depth.to_le_bytes();
        let flags = layout::DETAILS | layout::AWAITS;
        let parts = [old[0], old[1], old[2], path, algorithm, flags, low, high];
        words.store_relaxed(record::WHAT, u64::from_le_bytes(parts));
        words.store_release(record::STAMP, Stamp { sequence, phase: Phase::Running }.word());
    }

    /// It waits for `ranks` ranks, of which `first` is one.
    #[inline]
    pub fn waits(&self, sequence: u64, first: u32, ranks: u32) {
        if let Some(words) = self.own(sequence) {
            words.store_release(record::AWAITED, layout::pair(first, ranks));
            let what = words.load_relaxed(record::WHAT);
            words.store_release(record::WHAT, what | AWAITS_BIT);
        }
    }

    /// It has ended.
    #[inline]
    pub fn end(&self, sequence: u64, well: bool) {
        if let Some(words) = self.own(sequence) {
            words.store_release(record::ENDED, self.clock.ticks());
            let phase = if well { Phase::Done } else { Phase::Failed };
            words.store_release(record::STAMP, Stamp { sequence, phase }.word());
        }
    }

    /// The record of an operation, if it has one.
    #[inline]
    fn own(&self, sequence: u64) -> Option<M::Record<'_>> {
        let words = self.memory.record((sequence & self.mask) as u32)?;
        if words.load_relaxed(record::STAMP) >> PHASE_BITS == sequence {
            return Some(words);
        }
        self.own_spare(sequence)
    }

    #[cold]
    fn own_spare(&self, sequence: u64) -> Option<M::Record<'_>> {
        self.spares().find(|words| {
            let stamp = Stamp::parse(words.load_relaxed(record::STAMP));
            stamp.is_some_and(|stamp| stamp.sequence == sequence)
        })
    }

    fn spares(&self) -> impl Iterator<Item = M::Record<'_>> {
        let first = self.mask as u32 + 1;
        (first..first + SPARE_RECORDS as u32).filter_map(|place| self.memory.record(place))
    }

    /// The place of an operation in the ring. Where one that has not ended has it, that one keeps
    /// it, and a spare place is taken. Acquire: the writes of the one that had it come before.
    ///
    /// Two calls whose numbers are a whole ring apart may both find it free, if the first sleeps
    /// just here while the others run; then one record is wrong, and its own operation leaves it.
    #[inline]
    fn place(&self, sequence: u64) -> Option<M::Record<'_>> {
        let words = self.memory.record((sequence & self.mask) as u32)?;
        if is_live(words.load_acquire(record::STAMP)) {
            return self.spare(sequence);
        }
        Some(words)
    }

    /// The spare place that is free and whose operation was called longest ago, so that what ended
    /// last stays to be seen.
    #[cold]
    fn spare(&self, sequence: u64) -> Option<M::Record<'_>> {
        let writing = Stamp { sequence, phase: Phase::Writing }.word();
        for _ in 0..SPARE_RECORDS {
            let stamps = self.spares().map(|words| (words, words.load_relaxed(record::STAMP)));
            let free = stamps.filter(|(_, stamp)| !is_live(*stamp));
            let Some((words, stamp)) = free.min_by_key(|(_, stamp)| *stamp) else { break };
            // Any operation may want it: only one gets it.
            if words.exchange_acquire(record::STAMP, stamp, writing) {
                return Some(words);
            }
        }
        self.memory.header().add(header::LOST, 1);
        None
    }
}

/// Whether a stamp is that of an operation that has not ended.
fn is_live(stamp: u64) -> bool {
    Stamp::parse(stamp).is_some_and(|stamp| stamp.phase.is_live())
}
