//! Writes the record of one communicator.
//!
//! A record has one writer after another: the thread that calls the operation, then the threads
//! that drive it, which hand it over under the locks of the communicator. The first word of a
//! record, its stamp, is written last in every change that readers must see whole.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use nix::unistd::{Pid, Uid};
use stepccl_memory::{MemoryError, Segment};

use crate::about::padded;
use crate::layout::{self, HEADER_BYTES, RECORD_BYTES, RECORD_WORDS, header, record};
use crate::phase::{PHASE_BITS, Stamp};
use crate::{About, ClockKind, Moment, Phase, Snapshot, State};

/// [`layout::AWAITS`] in the word that has the flags.
const AWAITS_BIT: u64 = u64::from_le_bytes([0, 0, 0, 0, 0, layout::AWAITS, 0, 0]);

/// What is known of an operation when it is called.
#[derive(Clone, Copy, Debug)]
pub struct Called {
    /// Number in the table of kinds.
    pub kind: u8,
    /// Number in the table of types, or [`layout::NO_WORD`].
    pub dtype: u8,
    /// Number in the table of reductions, or [`layout::NO_WORD`].
    pub op: u8,
    /// Number in the table of paths, or [`layout::NO_WORD`] where it is not known yet.
    pub path: u8,
    /// Root or peer, or [`layout::NO_RANK`].
    pub with: u32,
    /// Tag of a message.
    pub tag: i32,
    /// Number of the operation on its communicator: no two have the same, and it never goes back.
    pub sequence: u64,
    /// Whether it is the next collective; only one thread at a time says so. An operation that
    /// waits for its turn gets its number by [`Recorder::is_next_collective`].
    pub is_next_collective: bool,
    /// Bytes of the message on this rank.
    pub bytes: u64,
    /// Elements of one block.
    pub count: u64,
}

/// What is known of it when it starts.
#[derive(Clone, Copy, Debug)]
pub struct Started {
    /// Number in the table of paths, or [`layout::NO_WORD`].
    pub path: u8,
    /// Number in the table of algorithms, or [`layout::NO_WORD`].
    pub algorithm: u8,
    /// Pages in flight.
    pub depth: u16,
    /// Bytes of a page of one block; 0: none.
    pub page_bytes: u64,
    /// Queue it ran in.
    pub lane: u32,
}

/// The record of one communicator. Calls are cheap and may come from any thread; those for one
/// operation come one after the other, and name it by its number on the communicator.
#[derive(Debug)]
pub struct Recorder {
    ring: Option<Ring>,
}

#[derive(Debug)]
struct Ring {
    segment: Segment,
    clock: ClockKind,
    mask: u64,
    pid: Pid,
}

impl Recorder {
    /// A record of at least `records` operations, rounded up to a power of two; 0: none is kept.
    ///
    /// # Errors
    ///
    /// [`MemoryError`] where the system gives no memory or no descriptor.
    pub fn new(about: &About<'_>, records: usize) -> Result<Self, MemoryError> {
        if records == 0 {
            return Ok(Self::off());
        }
        let records = records.clamp(layout::MIN_RECORDS, layout::MAX_RECORDS).next_power_of_two();
        let bytes = layout::file_bytes(records);
        let segment = Segment::create(layout::FILE_NAME, bytes)?;
        // The first round of the ring is not to cost more than the later ones.
        segment.populate(0, bytes)?;
        let clock = ClockKind::best();
        let ring = Ring { segment, clock, mask: records as u64 - 1, pid: Pid::this() };
        ring.write_header(about, records)?;
        Ok(Self { ring: Some(ring) })
    }

    /// Keeps nothing.
    #[must_use]
    pub const fn off() -> Self {
        Self { ring: None }
    }

    /// Whether records are kept.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.ring.is_some()
    }

    /// An operation was called and waits for its turn.
    #[inline]
    pub fn called(&self, what: &Called) {
        if let Some(ring) = &self.ring {
            ring.begin(what, Phase::Queued);
        }
    }

    /// An operation was called and runs at once.
    #[inline]
    pub fn called_and_started(&self, what: &Called) {
        if let Some(ring) = &self.ring {
            ring.begin(what, Phase::Running);
        }
    }

    /// It is the next collective: give it its number, unless it has one. Only one thread at a time
    /// calls this.
    #[inline]
    pub fn is_next_collective(&self, sequence: u64) {
        if let Some(ring) = &self.ring
            && let Some(words) = ring.own(sequence)
            && words[record::COLLECTIVE].load(Ordering::Relaxed) == layout::NONE
        {
            let header = ring.header();
            let number = header[header::COLLECTIVES].load(Ordering::Relaxed);
            header[header::COLLECTIVES].store(number + 1, Ordering::Relaxed);
            words[record::COLLECTIVE].store(number, Ordering::Relaxed);
        }
    }

    /// Its turn has come, unless it came before. `what` replaces the path given before.
    #[inline]
    pub fn started(&self, sequence: u64, what: &Started) {
        let queued = Stamp { sequence, phase: Phase::Queued }.word();
        if let Some(ring) = &self.ring
            && let Some(words) = ring.own(sequence)
            && words[record::STAMP].load(Ordering::Relaxed) == queued
        {
            ring.start(words, sequence, what);
        }
    }

    /// It waits for `ranks` ranks, of which `first` is one; 0: for none any more.
    #[inline]
    pub fn waits(&self, sequence: u64, first: u32, ranks: u32) {
        if let Some(ring) = &self.ring
            && let Some(words) = ring.own(sequence)
        {
            words[record::AWAITED].store(pair(first, ranks), Ordering::Relaxed);
            let what = words[record::WHAT].load(Ordering::Relaxed);
            words[record::WHAT].store(what | AWAITS_BIT, Ordering::Release);
        }
    }

    /// It has ended.
    #[inline]
    pub fn ended(&self, sequence: u64, well: bool) {
        if let Some(ring) = &self.ring
            && let Some(words) = ring.own(sequence)
        {
            words[record::ENDED].store(ring.clock.ticks(), Ordering::Relaxed);
            let phase = if well { Phase::Done } else { Phase::Failed };
            let stamp = Stamp { sequence, phase };
            words[record::STAMP].store(stamp.word(), Ordering::Release);
        }
    }

    /// Show `counters`, in the order of the vocabulary.
    pub fn count(&self, counters: impl IntoIterator<Item = u64>) {
        if let Some(ring) = &self.ring {
            let places = &ring.header()[header::COUNTERS..][..layout::COUNTERS];
            for (place, value) in places.iter().zip(counters) {
                place.store(value, Ordering::Relaxed);
            }
        }
    }

    /// The communicator is in another state; `culprit` is the rank blamed, if any.
    pub fn state(&self, state: State, culprit: Option<u32>) {
        // A child that was forked has this memory too, and must not speak for its parent.
        if let Some(ring) = &self.ring
            && ring.pid == Pid::this()
        {
            let word = pair(state.number(), culprit.unwrap_or(layout::NO_RANK));
            ring.header()[header::STATE].store(word, Ordering::Relaxed);
        }
    }

    /// Copy all of its bytes to `to`, which has as many. Whether that could be.
    #[must_use]
    pub fn copy_out(&self, to: &mut [u8]) -> bool {
        self.ring.as_ref().is_some_and(|ring| to.len() == ring.segment.bytes() && ring.read(0, to))
    }

    /// What is in it now. None where it is off.
    #[must_use]
    pub fn snapshot(&self) -> Option<Snapshot> {
        let ring = self.ring.as_ref()?;
        Snapshot::take(ring.segment.bytes(), |at, bytes| ring.read(at, bytes)).ok()
    }
}

impl Ring {
    /// Copy whole words out, while other threads of this process write them. Whether they are there.
    fn read(&self, at: usize, bytes: &mut [u8]) -> bool {
        let (to, rest) = bytes.as_chunks_mut::<8>();
        let Ok(words) = self.segment.view().atomic_u64s(at, to.len()) else { return false };
        for (to, word) in to.iter_mut().zip(words) {
            *to = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        rest.is_empty()
    }

    fn header(&self) -> &[AtomicU64] {
        // The segment is at least a header long and aligned to a page.
        self.segment.view().atomic_u64s(0, HEADER_BYTES / 8).unwrap_or(&[])
    }

    fn record(&self, place: u32) -> Option<&[AtomicU64; RECORD_WORDS]> {
        let at = layout::record_at(place as usize);
        self.segment.view().atomic_u64s(at, RECORD_WORDS).ok()?.try_into().ok()
    }

    /// The record of an operation, if it has one.
    #[inline]
    fn own(&self, sequence: u64) -> Option<&[AtomicU64; RECORD_WORDS]> {
        let words = self.record((sequence & self.mask) as u32)?;
        if words[record::STAMP].load(Ordering::Relaxed) >> PHASE_BITS == sequence {
            return Some(words);
        }
        self.own_spare(sequence)
    }

    #[cold]
    fn own_spare(&self, sequence: u64) -> Option<&[AtomicU64; RECORD_WORDS]> {
        let first = self.mask as u32 + 1;
        (first..first + layout::SPARE_RECORDS as u32).find_map(|place| {
            let words = self.record(place)?;
            let stamp = Stamp::parse(words[record::STAMP].load(Ordering::Relaxed))?;
            (stamp.sequence == sequence).then_some(words)
        })
    }

    #[inline]
    fn begin(&self, what: &Called, phase: Phase) {
        let Called { kind, dtype, op, path, with, tag, sequence, is_next_collective, bytes, count } =
            *what;
        let header = self.header();
        header[header::OPERATIONS].store(sequence + 1, Ordering::Relaxed);
        let mut collective = layout::NONE;
        if is_next_collective {
            collective = header[header::COLLECTIVES].load(Ordering::Relaxed);
            header[header::COLLECTIVES].store(collective + 1, Ordering::Relaxed);
        }
        let Some(words) = self.place(sequence) else { return };
        let stamp = |phase| Stamp { sequence, phase }.word();
        words[record::STAMP].store(stamp(Phase::Writing), Ordering::Relaxed);
        // Who sees what follows also sees that the record is being written.
        fence(Ordering::Release);
        let parts = [kind, dtype, op, path, layout::NO_WORD, 0, 0, 0];
        words[record::COLLECTIVE].store(collective, Ordering::Relaxed);
        words[record::WHAT].store(u64::from_le_bytes(parts), Ordering::Relaxed);
        words[record::WITH].store(pair(with, tag.cast_unsigned()), Ordering::Relaxed);
        words[record::BYTES].store(bytes, Ordering::Relaxed);
        words[record::COUNT].store(count, Ordering::Relaxed);
        words[record::CALLED].store(self.clock.ticks(), Ordering::Relaxed);
        words[record::STAMP].store(stamp(phase), Ordering::Release);
    }

    /// The place of an operation in the ring. Where one that has not ended has it, that one keeps
    /// it, and a spare place is taken.
    ///
    /// Two calls whose numbers are a whole ring apart may both find it free, if the first sleeps
    /// just here while the others run; then one record is wrong, and its own operation leaves it.
    #[inline]
    fn place(&self, sequence: u64) -> Option<&[AtomicU64; RECORD_WORDS]> {
        let words = self.record((sequence & self.mask) as u32)?;
        if is_live(words[record::STAMP].load(Ordering::Relaxed)) {
            return self.spare(sequence);
        }
        Some(words)
    }

    /// The spare place that is free and whose operation was called longest ago, so that what ended
    /// last stays to be seen.
    #[cold]
    fn spare(&self, sequence: u64) -> Option<&[AtomicU64; RECORD_WORDS]> {
        let writing = Stamp { sequence, phase: Phase::Writing }.word();
        let first = self.mask as u32 + 1;
        let places =
            || (first..first + layout::SPARE_RECORDS as u32).filter_map(|at| self.record(at));
        for _ in 0..layout::SPARE_RECORDS {
            let stamps =
                places().map(|words| (words, words[record::STAMP].load(Ordering::Relaxed)));
            let free = stamps.filter(|(_, stamp)| !is_live(*stamp));
            let Some((words, stamp)) = free.min_by_key(|(_, stamp)| *stamp) else { break };
            // Any operation may want it: only one gets it.
            if words[record::STAMP]
                .compare_exchange(stamp, writing, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
            {
                return Some(words);
            }
        }
        self.header()[header::LOST].fetch_add(1, Ordering::Relaxed);
        None
    }

    #[inline]
    fn start(&self, words: &[AtomicU64; RECORD_WORDS], sequence: u64, what: &Started) {
        let Started { path, algorithm, depth, page_bytes, lane } = *what;
        words[record::STARTED].store(self.clock.ticks(), Ordering::Relaxed);
        words[record::PAGE].store(page_bytes, Ordering::Relaxed);
        words[record::AWAITED].store(0, Ordering::Relaxed);
        words[record::LANE].store(u64::from(lane), Ordering::Relaxed);
        let old = words[record::WHAT].load(Ordering::Relaxed).to_le_bytes();
        let [low, high] = depth.to_le_bytes();
        let flags = layout::DETAILS | layout::AWAITS;
        let parts = [old[0], old[1], old[2], path, algorithm, flags, low, high];
        words[record::WHAT].store(u64::from_le_bytes(parts), Ordering::Relaxed);
        let stamp = Stamp { sequence, phase: Phase::Running };
        words[record::STAMP].store(stamp.word(), Ordering::Release);
    }

    fn write_header(&self, about: &About<'_>, records: usize) -> Result<(), MemoryError> {
        let view = self.segment.view();
        view.copy_in(layout::NAME_AT, &padded::<{ layout::NAME_BYTES }>(about.communicator))?;
        view.copy_in(layout::HOST_AT, &padded::<{ layout::HOST_BYTES }>(&host_name()))?;
        view.copy_in(layout::ENGINE_AT, &padded::<{ layout::ENGINE_BYTES }>(about.engine))?;
        view.copy_in(layout::WORDS_AT, &about.vocabulary.encode())?;
        let made = Moment::now(self.clock);
        let words = self.header();
        let values = [
            (header::FORMAT, pair(0, RECORD_BYTES as u32)),
            (header::RECORDS, records as u64),
            (
                header::PROCESS,
                pair(Pid::this().as_raw().cast_unsigned(), Uid::effective().as_raw()),
            ),
            (header::RANK, pair(about.rank, about.ranks)),
            (header::JOB, about.job),
            (header::CLOCK, self.clock.number()),
            (header::TICKS, made.ticks),
            (header::MONOTONIC, made.monotonic_ns),
            (header::REALTIME, made.realtime_ns),
            (header::STATE, pair(State::Open.number(), layout::NO_RANK)),
        ];
        for (at, value) in values {
            words[at].store(value, Ordering::Relaxed);
        }
        // Readers look at it first: with it, the header is whole.
        words[header::MAGIC].store(layout::MAGIC, Ordering::Release);
        Ok(())
    }
}

/// Whether a stamp is that of an operation that has not ended.
fn is_live(stamp: u64) -> bool {
    Stamp::parse(stamp).is_some_and(|stamp| stamp.phase.is_live())
}

const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

fn host_name() -> String {
    nix::sys::utsname::uname()
        .map(|names| names.nodename().to_string_lossy().into_owned())
        .unwrap_or_default()
}
