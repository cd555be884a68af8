//! Readers believe nothing: any bytes are an error or a record, never a panic.
#![cfg(not(loom))]

use proptest::prelude::*;
use stepccl_flight::layout::{self, HEADER_BYTES, RECORD_BYTES, header};
use stepccl_flight::{
    About, Called, Found, Operation, Recorder, Snapshot, Vocabulary, table, trace,
};

const RECORDS: usize = 16;

fn recorder() -> Recorder {
    let about = About {
        communicator: "world.0",
        job: 7,
        rank: 0,
        ranks: 2,
        engine: "host",
        vocabulary: Vocabulary {
            kinds: vec!["all_reduce", "send"],
            dtypes: vec!["float"],
            ops: vec!["sum"],
            ..Vocabulary::default()
        },
    };
    Recorder::new(&about, RECORDS).unwrap()
}

fn called(sequence: u64) -> Called {
    Called {
        kind: 1,
        dtype: 1,
        op: 1,
        path: 0,
        with: layout::NO_RANK,
        tag: 0,
        sequence,
        is_next_collective: true,
        bytes: 8,
        count: 2,
    }
}

fn bytes_of(recorder: &Recorder) -> Vec<u8> {
    let mut all = vec![0; layout::file_bytes(RECORDS)];
    let copied = recorder.copy_out(&mut all);
    assert!(copied);
    all
}

fn take(bytes: &[u8]) -> Option<Snapshot> {
    Snapshot::take(bytes.len(), |at, to: &mut [u8]| {
        bytes.get(at..at + to.len()).map(|from| to.copy_from_slice(from)).is_some()
    })
    .ok()
}

/// Everything that people and programs are shown of it.
fn show(snapshot: Snapshot) -> String {
    let history = table::history(&snapshot, 8);
    let found = [Found::own(snapshot)];
    let trace = trace::export(&found);
    table::status(&found, true) + &history + &trace.to_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bytes_are_read_without_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..3 * HEADER_BYTES),
    ) {
        if let Some(snapshot) = take(&bytes) {
            show(snapshot);
        }
    }

    #[test]
    fn a_record_with_words_of_anybody_shows_no_control_character(
        changes in prop::collection::vec((0..layout::file_bytes(RECORDS) / 8, any::<u64>()), 0..40),
    ) {
        let recorder = recorder();
        for sequence in 0..20 {
            recorder.called_and_started(&called(sequence));
            recorder.ended(sequence, sequence % 3 != 0);
        }
        let mut bytes = bytes_of(&recorder);
        for (at, word) in changes {
            // The first words decide whether it is a record at all.
            if at > header::RECORDS {
                bytes[at * 8..at * 8 + 8].copy_from_slice(&word.to_ne_bytes());
            }
        }
        if let Some(snapshot) = take(&bytes) {
            prop_assert!(show(snapshot).chars().all(|c| c == '\n' || !c.is_control()));
        }
    }

    #[test]
    fn an_operation_is_taken_only_where_its_stamp_held_still(
        record in prop::array::uniform32(any::<u32>()), before: u64, after: u64,
    ) {
        let mut bytes = [0; RECORD_BYTES];
        for (to, word) in bytes.chunks_exact_mut(4).zip(record) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        let with_stamp = |stamp: u64| {
            let mut bytes = bytes;
            bytes[..8].copy_from_slice(&stamp.to_ne_bytes());
            bytes
        };
        let [old, new] = [before, after].map(with_stamp);
        if before != after {
            for (first, copy, last) in [(before, &old, &new), (before, &new, &old), (after, &old, &old)] {
                prop_assert_eq!(Operation::parse(first, copy, last), None);
            }
        }
        if let Some(operation) = Operation::parse(before, &old, &old) {
            prop_assert_eq!(operation.sequence, before >> 3);
        }
    }
}

#[test]
fn a_short_or_foreign_file_is_refused_with_the_reason() {
    let error = |bytes: &[u8]| {
        Snapshot::take(bytes.len(), |at, to: &mut [u8]| {
            bytes.get(at..at + to.len()).map(|from| to.copy_from_slice(from)).is_some()
        })
        .unwrap_err()
        .to_string()
    };
    assert!(error(&[0; 100]).contains("byte 0"));
    assert!(error(&vec![0; layout::file_bytes(RECORDS)]).contains("starts with"));
    let mut bytes = bytes_of(&recorder());
    bytes[header::RECORDS * 8..header::RECORDS * 8 + 8].copy_from_slice(&u64::MAX.to_ne_bytes());
    assert!(error(&bytes).contains("records = 18446744073709551615"));
    let mut bytes = bytes_of(&recorder());
    bytes[header::RANK * 8..header::RANK * 8 + 8].copy_from_slice(&0xffff_ffff_u64.to_ne_bytes());
    assert!(error(&bytes).contains("rank"));
}
