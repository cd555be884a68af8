//! What is written is what is read, however the ring turns.
#![cfg(not(loom))]

use proptest::prelude::*;
use stepccl_flight::{About, Called, Phase, Recorder, Started, State, Vocabulary, layout};

fn recorder(records: usize) -> Recorder {
    let about = About {
        communicator: "world.0",
        job: 7,
        rank: 1,
        ranks: 2,
        engine: "host",
        vocabulary: Vocabulary {
            kinds: vec!["all_reduce"],
            counters: vec!["copied", "added"],
            ..Vocabulary::default()
        },
    };
    Recorder::new(&about, records).unwrap()
}

fn called(sequence: u64) -> Called {
    Called {
        kind: 1,
        dtype: 2,
        op: 3,
        path: 4,
        with: 5,
        tag: -6,
        sequence,
        is_next_collective: false,
        bytes: 7,
        count: 8,
    }
}

#[test]
fn every_field_comes_back() {
    let recorder = recorder(16);
    recorder.called(&called(9));
    let queued = recorder.snapshot().unwrap();
    assert_eq!(queued.operations[0].phase, Phase::Queued);
    assert_eq!(queued.operations[0].started, None);
    recorder.is_next_collective(9);
    recorder
        .started(9, &Started { path: 1, algorithm: 2, depth: 300, page_bytes: 1 << 40, lane: 12 });
    recorder.waits(9, 3, 2);
    recorder.count([11, 22]);
    let running = recorder.snapshot().unwrap();
    let operation = running.operations[0];
    assert_eq!((operation.sequence, operation.collective), (9, Some(0)));
    assert_eq!((operation.kind, operation.dtype, operation.op, operation.path), (1, 2, 3, 1));
    assert_eq!((operation.with, operation.tag), (Some(5), -6));
    assert_eq!((operation.bytes, operation.count, operation.algorithm), (7, 8, 2));
    let details = operation.details.unwrap();
    assert_eq!((details.depth, details.page_bytes, details.lane), (300, 1 << 40, 12));
    assert_eq!(operation.awaited, Some((3, 2)));
    assert_eq!(operation.phase, Phase::Running);
    recorder.ended(9, false);
    recorder.state(State::Failed, Some(1));
    let ended = recorder.snapshot().unwrap();
    assert_eq!(ended.operations[0].phase, Phase::Failed);
    assert!(ended.operations[0].ended >= operation.started);
    let header = &ended.header;
    assert_eq!((header.communicator.as_str(), header.rank, header.ranks), ("world.0", 1, 2));
    assert_eq!((header.state, header.culprit), (State::Failed, Some(1)));
    assert_eq!((header.operations, header.collectives, header.job), (10, 1, 7));
    let counters: Vec<_> = header.counters.iter().map(|c| (c.name.as_str(), c.value)).collect();
    assert_eq!(counters, [("copied", 11), ("added", 22)]);
}

#[test]
fn one_that_hangs_keeps_its_record_while_many_pass() {
    let recorder = recorder(16);
    recorder.called_and_started(&called(3));
    for sequence in 4..1000 {
        recorder.called_and_started(&called(sequence));
        recorder.ended(sequence, true);
    }
    let snapshot = recorder.snapshot().unwrap();
    assert_eq!(snapshot.live().map(|o| o.sequence).collect::<Vec<_>>(), [3]);
    assert_eq!(snapshot.last_ended().unwrap().sequence, 999);
    recorder.ended(3, true);
    assert_eq!(recorder.snapshot().unwrap().live().count(), 0);
}

#[test]
fn more_that_hang_than_there_are_places_are_counted() {
    let recorder = recorder(16);
    let places = 16 + layout::SPARE_RECORDS as u64;
    for sequence in 0..places + 5 {
        recorder.called(&called(sequence));
    }
    let snapshot = recorder.snapshot().unwrap();
    assert_eq!(snapshot.live().count() as u64, places);
    assert_eq!(snapshot.header.lost, 5);
    // Without a record, there is nothing to end.
    recorder.ended(places + 1, true);
    assert_eq!(recorder.snapshot().unwrap().live().count() as u64, places);
}

#[test]
fn none_is_kept_where_it_is_off() {
    let recorder = recorder(0);
    recorder.called(&called(0));
    recorder.ended(0, true);
    assert!(!recorder.is_on() && recorder.snapshot().is_none());
}

#[test]
fn readers_beside_writers_see_whole_records_only() {
    let recorder = recorder(16);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (recorder, stop) = (&recorder, &stop);
            scope.spawn(move || {
                let mut sequence = thread;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let (bytes, count) = (sequence, sequence);
                    recorder.called_and_started(&Called { bytes, count, ..called(sequence) });
                    recorder.ended(sequence, true);
                    sequence += 2;
                }
            });
        }
        for _ in 0..if cfg!(miri) { 2 } else { 300 } {
            for operation in recorder.snapshot().unwrap().operations {
                assert_eq!(operation.bytes, operation.sequence);
                assert_eq!(operation.count, operation.sequence);
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 64 }))]

    #[test]
    fn what_has_not_ended_is_there_and_the_last_that_ended(
        ends in prop::collection::vec(prop::bool::weighted(0.95), 1..400),
    ) {
        let recorder = recorder(16);
        let mut hanging = Vec::new();
        for (sequence, ends) in (0..).zip(&ends) {
            recorder.called_and_started(&called(sequence));
            if *ends {
                recorder.ended(sequence, true);
            } else {
                hanging.push(sequence);
            }
        }
        let snapshot = recorder.snapshot().unwrap();
        prop_assert_eq!(snapshot.live().map(|o| o.sequence).collect::<Vec<_>>(), hanging);
        let last = (0..).zip(&ends).filter(|(_, ends)| **ends).map(|(sequence, _)| sequence).last();
        prop_assert_eq!(snapshot.operations.iter().filter(|o| o.ended.is_some()).map(|o| o.sequence).max(), last);
    }
}
