//! Flight records of other processes: any bytes are an error or a record, and what people and
//! programs are shown of it has no control characters.

use std::sync::OnceLock;

use stepccl_flight::layout::{self, RECORD_BYTES};
use stepccl_flight::{
    About, Called, Found, Operation, Recorder, Snapshot, Vocabulary, table, trace,
};

use super::input::Input;

const RECORDS: usize = 16;

/// A record of some operations, as a rank leaves it.
fn honest() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
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
        let mut bytes = vec![0; layout::file_bytes(RECORDS)];
        if let Ok(recorder) = Recorder::new(&about, RECORDS) {
            for sequence in 0..20 {
                recorder.called_and_started(&called(sequence));
                if sequence % 4 != 3 {
                    recorder.ended(sequence, sequence % 3 != 0);
                }
            }
            assert!(recorder.copy_out(&mut bytes));
        }
        bytes
    })
}

fn called(sequence: u64) -> Called {
    Called {
        kind: 1,
        dtype: 1,
        op: 1,
        path: 0,
        with: if sequence.is_multiple_of(2) { layout::NO_RANK } else { 1 },
        tag: 0,
        sequence,
        is_next_collective: sequence.is_multiple_of(2),
        bytes: 8,
        count: 2,
    }
}

fn show(bytes: &[u8]) {
    let read = |at: usize, to: &mut [u8]| {
        bytes.get(at..at + to.len()).map(|from| to.copy_from_slice(from)).is_some()
    };
    let Ok(snapshot) = Snapshot::take(bytes.len(), read) else { return };
    let history = table::history(&snapshot, 8);
    let found = [Found::own(snapshot)];
    let text = table::status(&found, true) + &history + &trace::export(&found).to_string();
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

/// The first byte says whether the rest is a file, or changes of an honest one.
pub(crate) fn run(data: &[u8]) {
    let Some((how, rest)) = data.split_first() else { return };
    if *how == 0 {
        return show(rest);
    }
    let mut bytes = honest().to_vec();
    let mut input = Input(rest);
    while !input.is_empty() {
        let at = usize::from(input.u16()) * 8 % bytes.len();
        bytes[at..at + 8].copy_from_slice(&input.u64().to_ne_bytes());
    }
    show(&bytes);
    for record in bytes[layout::HEADER_BYTES..].as_chunks::<RECORD_BYTES>().0 {
        // A stamp that did not hold still is no operation.
        let mut later = *record;
        later[0] ^= 1;
        let stamp = u64::from_ne_bytes(*record.first_chunk().expect("a record is longer"));
        assert_eq!(Operation::parse(stamp, record, &later), None);
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let word =
        |at: usize, value: u64| [&(at as u16).to_le_bytes()[..], &value.to_le_bytes()].concat();
    vec![
        [&[0][..], honest()].concat(),
        vec![1],
        [&[1][..], &word(layout::header::RECORDS, 16), &word(layout::header::STATE, 3)].concat(),
        [&[1][..], &word(layout::HEADER_BYTES / 8 + layout::record::WHAT, u64::MAX)].concat(),
    ]
}
