//! What goes into the flight record, and when.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stepccl_engine::Meter;
use stepccl_flight::{About, Called, Recorder, Started, State, Vocabulary, layout, table};
use stepccl_plan::{Algorithm, Collective, DType, ReduceOp};

use crate::Error;
use crate::called;
use crate::error::With;
use crate::rounds::Await;
use crate::shape::Shape;
use crate::task::{COLLECTIVES, Entry, Identity, Member, Task};

/// Line of a note that holds the number of a job.
const LINE: &str = "job=";
/// Operations that the log shows after a fatal error.
const DUMPED: usize = 8;
/// Operations between two looks at the counters of the engine; a power of two.
const COUNT_EVERY: u64 = 64;

/// Operations that are no collectives, as they are named where they are made.
const MESSAGES: [&str; 5] = ["send", "recv", "recv_any", "copy", "group"];
/// How operations get their bytes moved.
const PATHS: [&str; 6] = ["post", "staged", "message", "pull", "group", "local"];
/// Place of the first of them in the vocabulary.
const POST: u8 = 1;

/// The record of one communicator.
#[derive(Debug)]
pub(crate) struct Flight {
    recorder: Recorder,
    meter: Arc<Meter>,
    who: String,
    dumped: AtomicBool,
}

/// Whose record it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a> {
    pub communicator: &'a str,
    pub job: u64,
    pub rank: u32,
    pub ranks: u32,
    pub engine: &'a str,
}

/// The line for a rank's note: a number that no other job has, if this is rank 0's.
pub(crate) fn note() -> String {
    // The keys of the hash are random.
    format!("{LINE}{}\n", RandomState::new().build_hasher().finish())
}

/// The number of the job: that of rank 0.
pub(crate) fn job(notes: &[Vec<u8>]) -> u64 {
    let first = String::from_utf8_lossy(notes.first().map_or(&[], Vec::as_slice));
    let number = first.lines().find_map(|line| line.strip_prefix(LINE)?.parse().ok());
    number.unwrap_or_default()
}

impl Flight {
    /// A record of `records` operations. Where the system has no memory or descriptor for it, there
    /// is none.
    pub fn new(owner: Owner<'_>, records: usize, meter: Arc<Meter>) -> Self {
        let Owner { communicator, job, rank, ranks, engine } = owner;
        let who = format!("rank {rank}/{ranks} {communicator}");
        let about = About { communicator, job, rank, ranks, engine, vocabulary: vocabulary() };
        let recorder = Recorder::new(&about, records).unwrap_or_else(|error| {
            log::warn!("{who}: no flight record: {error}");
            Recorder::off()
        });
        Self { recorder, meter, who, dumped: AtomicBool::new(false) }
    }

    /// Without a record.
    pub fn off() -> Self {
        Self {
            recorder: Recorder::off(),
            meter: Arc::default(),
            who: String::new(),
            dumped: AtomicBool::new(true),
        }
    }

    /// `rank 0/2 world.0`, as log lines begin.
    pub fn who(&self) -> &str {
        &self.who
    }

    /// An operation runs at once on the thread that called it.
    #[inline]
    pub fn runs(&self, member: &Member) {
        if self.recorder.is_on() {
            let Member { lane, task, identity } = member;
            let is_next_collective = *lane == COLLECTIVES;
            let called = Called { is_next_collective, ..called(task, identity) };
            match task {
                Task::Collective(_) => {
                    self.recorder.called(&called);
                    self.starts(*lane, task, identity);
                }
                _ => self.recorder.called_and_started(&called),
            }
        }
    }

    /// Collective `sequence`, of posts, runs at once on the thread that called it.
    #[inline]
    pub fn posts(&self, shape: &Shape, sequence: u64) {
        if self.recorder.is_on() {
            let [kind, dtype, op] = shape.called.codes();
            self.recorder.called_and_started(&Called {
                kind,
                dtype,
                op,
                path: POST,
                with: with(shape.with),
                tag: 0,
                sequence,
                is_next_collective: true,
                bytes: shape.message_bytes,
                count: shape.called.0[1],
            });
        }
    }

    /// An operation was called and will be put into its lane.
    pub fn queues(&self, entry: &Entry) {
        if self.recorder.is_on() {
            self.recorder.called(&called(&entry.task, &entry.identity));
        }
    }

    /// An operation is in its lane now.
    pub fn enters(&self, entry: &Entry) {
        if entry.lane == COLLECTIVES {
            self.recorder.is_next_collective(entry.identity.sequence);
        }
    }

    /// It is the first of its lane.
    pub fn starts(&self, lane: usize, task: &Task, identity: &Identity) {
        let (algorithm, depth, page_bytes) = match task {
            Task::Collective(task) => {
                let (_, prepared) = task.about();
                let depth = u16::try_from(prepared.depth).unwrap_or(u16::MAX);
                (prepared.algorithm, depth, prepared.page_bytes as u64)
            }
            _ => (layout::NO_WORD, 0, 0),
        };
        let lane = u32::try_from(lane).unwrap_or(u32::MAX);
        let started = Started { path: path(task), algorithm, depth, page_bytes, lane };
        self.recorder.started(identity.sequence, &started);
    }

    /// It has ended.
    #[inline]
    pub fn ends(&self, identity: &Identity, well: bool) {
        self.ends_as(identity.sequence, well);
    }

    /// Operation `sequence` has ended.
    #[inline]
    pub fn ends_as(&self, sequence: u64, well: bool) {
        self.recorder.ended(sequence, well);
        if sequence.is_multiple_of(COUNT_EVERY) {
            self.count();
        }
    }

    /// It waits for what is in `waits`.
    pub fn waits<'a>(&self, identity: &Identity, waits: impl Iterator<Item = &'a Await>) {
        if self.recorder.is_on() {
            let mut ranks: Vec<u32> = waits.map(|wait| wait.rank).collect();
            ranks.sort_unstable();
            ranks.dedup();
            let first = ranks.first().copied().unwrap_or(layout::NO_RANK);
            self.recorder.waits(identity.sequence, first, ranks.len() as u32);
        }
    }

    /// Show the counters of the engine.
    pub fn count(&self) {
        if self.recorder.is_on() {
            self.recorder.count(self.meter.read().named().map(|(_, value)| value));
        }
    }

    /// The communicator was closed in good order.
    pub fn closes(&self) {
        self.recorder.state(State::Closed, None);
        log::info!("{}: closed", self.who);
    }

    /// No operation can be right any more: say why, and what was going on.
    pub fn fails(&self, error: &Error, culprit: u32) {
        self.recorder.state(State::Failed, Some(culprit));
        if self.dumped.swap(true, Ordering::Relaxed) {
            return;
        }
        if matches!(error, Error::Aborted { .. }) {
            log::info!("{}: {error}", self.who);
            return;
        }
        log::error!("{}: {error}", self.who);
        if log::log_enabled!(log::Level::Error)
            && let Some(snapshot) = self.recorder.snapshot()
        {
            for line in table::history(&snapshot, DUMPED).lines() {
                log::error!("{}: {line}", self.who);
            }
        }
    }
}

fn vocabulary() -> Vocabulary<'static> {
    let named = stepccl_engine::Counters::default().named();
    Vocabulary {
        kinds: Collective::ALL.iter().map(|c| c.name()).chain(MESSAGES).collect(),
        dtypes: DType::ALL.iter().map(|d| d.name()).collect(),
        ops: ReduceOp::ALL.iter().map(|o| o.name()).collect(),
        algorithms: Algorithm::ALL.iter().map(|a| a.name()).collect(),
        paths: PATHS.to_vec(),
        counters: named.map(|(name, _)| name).to_vec(),
    }
}

/// Number of the algorithm in the vocabulary.
pub(crate) fn algorithm_code(algorithm: Algorithm) -> u8 {
    code(Algorithm::ALL.iter().map(|a| a.name()), algorithm.name())
}

fn code<'a>(mut names: impl Iterator<Item = &'a str>, name: &str) -> u8 {
    names.position(|n| n == name).map_or(layout::NO_WORD, |at| (at + 1) as u8)
}

fn path(task: &Task) -> u8 {
    match task {
        Task::Eager(_) => POST,
        Task::Collective(_) => 2,
        Task::Pair(_) | Task::Any(_) => 3,
        Task::Pull(_) => 4,
        Task::Packed(_) => 5,
        Task::Local(_) => 6,
    }
}

#[inline]
fn called(task: &Task, identity: &Identity) -> Called {
    let call = match task {
        Task::Eager(task) => Some(task.called()),
        Task::Pull(task) => Some(task.called()),
        Task::Collective(task) => Some(called::Called::of(task.about().0)),
        _ => None,
    };
    let ([kind, dtype, op], count) = match call {
        Some(call) => (call.codes(), call.0[1]),
        None => ([other_kind(identity.name), layout::NO_WORD, layout::NO_WORD], 0),
    };
    Called {
        kind,
        dtype,
        op,
        path: path(task),
        with: with(identity.with),
        tag: identity.tag,
        sequence: identity.sequence,
        is_next_collective: false,
        bytes: identity.bytes,
        count,
    }
}

#[inline]
fn with(with: Option<With>) -> u32 {
    match with {
        Some(With::Root(rank) | With::Peer(rank)) => rank,
        None => layout::NO_RANK,
    }
}

/// Number in the vocabulary of what has no codes of its own.
fn other_kind(name: &str) -> u8 {
    code(Collective::ALL.iter().map(|c| c.name()).chain(MESSAGES), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_is_that_of_rank_0() {
        let notes = [b"x=1\njob=77\n".to_vec(), note().into_bytes()];
        assert_eq!(job(&notes), 77);
        assert_eq!(job(&[b"job=none".to_vec()]), 0);
        assert_eq!(job(&[]), 0);
        assert_ne!(note(), note());
    }

    #[test]
    fn the_vocabulary_fits_its_tables() {
        let Vocabulary { kinds, dtypes, ops, algorithms, paths, counters } = vocabulary();
        let tables = [kinds, dtypes, ops, algorithms, paths, counters];
        for (table, entries) in tables.iter().zip(layout::TABLES) {
            assert!(table.len() < entries, "{table:?}");
            assert!(table.iter().all(|word| word.len() <= layout::WORD_BYTES), "{table:?}");
        }
        assert_eq!(tables[3][usize::from(algorithm_code(Algorithm::Ring)) - 1], "ring");
        assert_eq!(tables[0][usize::from(other_kind("recv")) - 1], "recv");
    }
}
