//! The record of one communicator, as the communicator uses it.

use nix::unistd::Pid;
use stepccl_memory::{MemoryError, Segment};

use crate::layout::{self, header};
use crate::mapped::Mapped;
use crate::{
    About, AtomicWords, Called, ClockKind, Phase, RecordMemory, Snapshot, Started, State, Writer,
};

/// The record of one communicator. Calls are cheap and may come from any thread; those for one
/// operation come one after the other, and name it by its number on the communicator.
#[derive(Debug)]
pub struct Recorder {
    ring: Option<Ring>,
}

#[derive(Debug)]
struct Ring {
    writer: Writer<Mapped>,
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
        let writer = Writer::new(Mapped(segment), ClockKind::best(), records);
        writer.write_header(about);
        Ok(Self { ring: Some(Ring { writer, pid: Pid::this() }) })
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
            ring.writer.begin(what, Phase::Queued);
        }
    }

    /// An operation was called and runs at once.
    #[inline]
    pub fn called_and_started(&self, what: &Called) {
        if let Some(ring) = &self.ring {
            ring.writer.begin(what, Phase::Running);
        }
    }

    /// It is the next collective: give it its number, unless it has one. Only one thread at a time
    /// calls this.
    #[inline]
    pub fn is_next_collective(&self, sequence: u64) {
        if let Some(ring) = &self.ring {
            ring.writer.is_next_collective(sequence);
        }
    }

    /// Its turn has come, unless it came before. `what` replaces the path given before.
    #[inline]
    pub fn started(&self, sequence: u64, what: &Started) {
        if let Some(ring) = &self.ring {
            ring.writer.start(sequence, what);
        }
    }

    /// It waits for `ranks` ranks, of which `first` is one; 0: for none any more.
    #[inline]
    pub fn waits(&self, sequence: u64, first: u32, ranks: u32) {
        if let Some(ring) = &self.ring {
            ring.writer.waits(sequence, first, ranks);
        }
    }

    /// It has ended.
    #[inline]
    pub fn ended(&self, sequence: u64, well: bool) {
        if let Some(ring) = &self.ring {
            ring.writer.end(sequence, well);
        }
    }

    /// Show `counters`, in the order of the vocabulary.
    pub fn count(&self, counters: impl IntoIterator<Item = u64>) {
        if let Some(ring) = &self.ring {
            let header = ring.writer.memory().header();
            for (at, value) in counters.into_iter().enumerate().take(layout::COUNTERS) {
                header.store_relaxed(header::COUNTERS + at, value);
            }
        }
    }

    /// The communicator is in another state; `culprit` is the rank blamed, if any.
    pub fn state(&self, state: State, culprit: Option<u32>) {
        // A child that was forked has this memory too, and must not speak for its parent.
        if let Some(ring) = &self.ring
            && ring.pid == Pid::this()
        {
            let word = layout::pair(state.number(), culprit.unwrap_or(layout::NO_RANK));
            ring.writer.memory().header().store_relaxed(header::STATE, word);
        }
    }

    /// Copy all of its bytes to `to`, which has as many. Whether that could be.
    #[must_use]
    pub fn copy_out(&self, to: &mut [u8]) -> bool {
        let memory = self.ring.as_ref().map(|ring| ring.writer.memory());
        memory.is_some_and(|memory| to.len() == memory.0.bytes() && memory.read(0, to))
    }

    /// What is in it now. None where it is off.
    #[must_use]
    pub fn snapshot(&self) -> Option<Snapshot> {
        let memory = self.ring.as_ref()?.writer.memory();
        Snapshot::take(memory.0.bytes(), |at, bytes: &mut [u8]| memory.read(at, bytes)).ok()
    }
}
