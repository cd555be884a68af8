//! What a record costs: nanoseconds an operation on this machine.
//!
//! `cargo run --release -p stepccl-flight --example cost`

use std::hint::black_box;
use std::time::Instant;

use stepccl_flight::{About, Called, ClockKind, Recorder, Started, Vocabulary, layout};

const ROUNDS: usize = 7;
const CALLS: u64 = 1_000_000;

fn main() {
    let about = About {
        communicator: "cost",
        job: 1,
        rank: 0,
        ranks: 1,
        engine: "none",
        vocabulary: Vocabulary { kinds: vec!["all_reduce"], ..Vocabulary::default() },
    };
    let recorder = match Recorder::new(&about, 2048) {
        Ok(recorder) => recorder,
        Err(error) => return eprintln!("no record: {error}"),
    };
    let off = Recorder::off();
    let clock = ClockKind::best();
    println!("clock {}", clock.name());
    report("one look at the clock", |_| {
        black_box(clock.ticks());
    });
    report("two looks at the clock", |_| {
        black_box(clock.ticks());
        black_box(clock.ticks());
    });
    report("off", |sequence| {
        black_box(&off).called_and_started(&called(sequence));
        black_box(&off).ended(sequence, true);
    });
    report("called and started at once, ended", |sequence| {
        black_box(&recorder).called_and_started(&called(sequence));
        black_box(&recorder).ended(sequence, true);
    });
    report("called, started, ended", |sequence| {
        black_box(&recorder).called(&called(sequence));
        black_box(&recorder).started(
            sequence,
            &Started { path: 1, algorithm: 1, depth: 2, page_bytes: 65_536, lane: 0 },
        );
        black_box(&recorder).ended(sequence, true);
    });
}

fn called(sequence: u64) -> Called {
    Called {
        kind: 1,
        dtype: 1,
        op: 1,
        path: 1,
        with: layout::NO_RANK,
        tag: 0,
        sequence,
        is_next_collective: true,
        bytes: 8,
        count: 2,
    }
}

/// The least mean of some rounds: other processes only ever add to it.
fn report(what: &str, mut call: impl FnMut(u64)) {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for sequence in 0..CALLS {
            call(black_box(sequence));
        }
        best = best.min(started.elapsed().as_secs_f64() * 1e9 / CALLS as f64);
    }
    println!("{what:<36} {best:6.1} ns");
}
