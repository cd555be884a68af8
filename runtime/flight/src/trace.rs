//! Records as a Chrome trace, which Perfetto and `chrome://tracing` show.
//!
//! Times are `CLOCK_REALTIME`, from the same zero as in the traces that torch's profiler writes, so
//! that both can be loaded into one view.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{Found, Operation, Phase, Snapshot, Timeline};

/// torch's profiler counts from the last multiple of this many seconds, a quarter of a year, so
/// that microseconds keep their fractions in a 64-bit float.
const PERIOD_S: u64 = 7_889_238;
const NS: u64 = 1_000_000_000;
/// Threads of the kernel have smaller numbers.
const FIRST_TRACK: u64 = 10_000_000;

/// Events of records, seen once or again and again.
#[derive(Debug, Default)]
pub struct Trace {
    /// Nanoseconds of the zero; none before the first record.
    zero_ns: Option<u64>,
    /// Records by process, job, communicator and rank.
    records: BTreeMap<Key, Track>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    pid: u32,
    job: u64,
    communicator: String,
    rank: u32,
}

#[derive(Debug, Default)]
struct Track {
    program: String,
    ranks: u32,
    /// By number: what was seen later replaces what was seen earlier.
    events: BTreeMap<u64, Event>,
}

#[derive(Debug)]
struct Event {
    lane: String,
    name: String,
    from_ns: u64,
    ns: u64,
    args: Value,
}

/// The trace of these records.
#[must_use]
pub fn export(found: &[Found]) -> Value {
    let mut trace = Trace::default();
    trace.add(found);
    trace.to_json()
}

impl Trace {
    /// Add what these records have. Operations that were added before are replaced.
    pub fn add(&mut self, found: &[Found]) {
        for Found { pid, program, snapshot, .. } in found {
            let Ok(snapshot) = snapshot else { continue };
            let Some(line) = &snapshot.timeline else { continue };
            let header = &snapshot.header;
            let now = line.now().realtime_ns;
            self.zero_ns.get_or_insert(now - now % (PERIOD_S * NS));
            let communicator = header.communicator.clone();
            let key = Key { pid: *pid, job: header.job, communicator, rank: header.rank };
            let track = self.records.entry(key).or_default();
            track.program.clone_from(program);
            track.ranks = header.ranks;
            for operation in &snapshot.operations {
                track.events.insert(operation.sequence, event(snapshot, line, operation));
            }
        }
    }

    /// Number of operations.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.records.values().map(|track| track.events.len()).sum()
    }

    /// As the JSON of a trace.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let zero = self.zero_ns.unwrap_or(0);
        let mut events = Vec::new();
        let mut next_track = FIRST_TRACK;
        for (key, track) in &self.records {
            let (pid, rank, ranks, communicator) =
                (key.pid, key.rank, track.ranks, &key.communicator);
            events.push(json!({"ph": "M", "name": "process_name", "pid": pid, "tid": 0,
                "args": {"name": track.program}}));
            let lanes: BTreeSet<&str> = track.events.values().map(|e| e.lane.as_str()).collect();
            for lane in lanes {
                let mut of_lane: Vec<&Event> =
                    track.events.values().filter(|e| e.lane == lane).collect();
                of_lane.sort_by_key(|e| e.from_ns);
                // Slices of one track may not cross: what overlaps goes to another one.
                let mut ends: Vec<u64> = Vec::new();
                for event in of_lane {
                    let place = ends.iter().position(|end| *end <= event.from_ns);
                    let place = place.unwrap_or_else(|| {
                        ends.push(0);
                        let tid = next_track + ends.len() as u64 - 1;
                        events.push(json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid,
                            "args": {"name": format!("stepccl {communicator} rank {rank}/{ranks} {lane}")}}));
                        ends.len() - 1
                    });
                    ends[place] = event.from_ns.saturating_add(event.ns);
                    events.push(
                        json!({"ph": "X", "cat": "stepccl", "name": event.name, "pid": pid,
                        "tid": next_track + place as u64,
                        "ts": microseconds(event.from_ns.saturating_sub(zero)),
                        "dur": microseconds(event.ns), "args": event.args}),
                    );
                }
                next_track += ends.len() as u64;
            }
        }
        json!({"schemaVersion": 1, "displayTimeUnit": "ns", "baseTimeNanoseconds": zero,
            "traceEvents": events})
    }
}

fn event(snapshot: &Snapshot, line: &Timeline, operation: &Operation) -> Event {
    let words = &snapshot.header.words;
    let from = operation.started.unwrap_or(operation.called);
    let lane = match (operation.with, operation.details) {
        (Some(peer), _) if operation.collective.is_none() && operation.phase != Phase::Queued => {
            format!("{} with {peer}", words.kind(operation.kind))
        }
        _ => "collectives".to_owned(),
    };
    let until = operation.ended.unwrap_or(line.now().ticks);
    Event {
        lane,
        name: words.kind(operation.kind),
        from_ns: line.realtime_ns(from),
        ns: line.span_ns(from, until),
        args: json!({
            "operation": operation.sequence,
            "collective": operation.collective,
            "dtype": words.dtype(operation.dtype),
            "op": words.op(operation.op),
            "with": operation.with,
            "tag": operation.tag,
            "bytes": operation.bytes,
            "count": operation.count,
            "path": words.path(operation.path),
            "algorithm": words.algorithm(operation.algorithm),
            "page_bytes": operation.details.map(|d| d.page_bytes),
            "depth": operation.details.map(|d| d.depth),
            "queued_us": microseconds(operation.queued_ns(line)),
            "state": operation.phase.name(),
        }),
    }
}

fn microseconds(ns: u64) -> f64 {
    ns as f64 / 1e3
}
