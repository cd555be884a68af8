//! Copies of every size and alignment move exactly their bytes.

use crate::Engine;

use super::buffer::Buffer;
use super::drive::{Numbers, copy, staging, within};

const SIZES: [usize; 22] = [
    0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 31, 63, 64, 65, 255, 256, 1023, 4095, 4097, 65_535, 65_536,
    200_001,
];
const ALIGNMENTS: [usize; 6] = [0, 1, 3, 8, 17, 64];
const GUARD: usize = 64;

/// Between user memory and the staging of every rank that an engine reaches, both ways, and
/// within user memory: the bytes arrive, and those around them stay.
///
/// # Panics
///
/// Where an engine does not conform.
pub fn copies(mut engines: Vec<Box<dyn Engine>>) {
    let ranks = engines.len() as u32;
    let mut numbers = Numbers(1);
    for engine in &mut engines {
        let engine = &mut **engine;
        let room = SIZES[SIZES.len() - 1] + 2 * GUARD + 64;
        let (from, to) = (Buffer::new(engine, room, false), Buffer::new(engine, room, true));
        for bytes in SIZES {
            for place in ALIGNMENTS.map(|align| align + GUARD) {
                let payload = numbers.bytes(bytes);
                from.write(place, &payload);
                for src_rank in (0..ranks).map(Some).chain([None]) {
                    // Through the staging of a rank, or straight.
                    let src = match src_rank.map(|rank| staging(engine, rank)) {
                        None => from.at(place),
                        Some(None) => continue,
                        Some(Some(staging)) => {
                            let middle = within(staging, (GUARD + bytes % 5) as u64);
                            copy(engine, from.at(place), middle, bytes as u64);
                            middle
                        }
                    };
                    let arrival = GUARD + (place * 7 + bytes) % 61;
                    let around = numbers.bytes(bytes + 2 * GUARD);
                    to.write(arrival - GUARD, &around);
                    copy(engine, src, to.at(arrival), bytes as u64);
                    let found = to.read(arrival - GUARD, bytes + 2 * GUARD);
                    let context = format!("{bytes} bytes of offset {place} by {src_rank:?}");
                    assert!(found[GUARD..GUARD + bytes] == payload, "payload of {context}");
                    assert_eq!(found[..GUARD], around[..GUARD], "before {context}");
                    assert_eq!(found[GUARD + bytes..], around[GUARD + bytes..], "behind {context}");
                }
            }
        }
        from.forget(engine);
        to.forget(engine);
    }
}
