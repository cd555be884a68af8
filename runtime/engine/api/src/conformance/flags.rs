//! Flags are seen by every rank, and what was done before a flag is seen with it.

use std::thread;

use stepccl_plan::Targets;

use crate::{Engine, Operation};

use super::buffer::Buffer;
use super::drive::{copy, run, staging, wait, within};

/// Rounds of the test that moves data.
const ROUNDS: u64 = 2_000;

/// A raised flag reads the same from every rank that is told, own included, and no other flag
/// moves. A rank that is not told sees the value before or after.
///
/// # Panics
///
/// Where an engine does not conform.
pub fn flags(mut engines: Vec<Box<dyn Engine>>) {
    let ranks = engines.len() as u32;
    let flags = engines[0].capabilities().flags;
    assert!(flags >= 8, "{flags} flags");
    // By rank that looks, rank that raises and flag: least and most that may be seen.
    let mut expected = vec![vec![vec![(0, 0); flags as usize]; ranks as usize]; ranks as usize];
    let values = [1, 2, 1 << 32, u64::MAX - 1, u64::MAX];
    for (value, step) in values.into_iter().zip(0u32..) {
        for rank in 0..ranks {
            let flag = (rank * 3 + step * 5) % flags;
            let to = if step % 2 == 0 { Targets::All } else { Targets::One((rank + 1) % ranks) };
            engines[rank as usize].signal(to, flag, value).expect("a signal");
            for (engine, expected) in
                engines.iter_mut().zip(&mut expected).zip(0..).map(|((engine, expected), looks)| {
                    let told = looks == rank || to == Targets::All || to == Targets::One(looks);
                    let (least, most) = &mut expected[rank as usize][flag as usize];
                    *most = value;
                    if told {
                        *least = value;
                    }
                    (engine, expected)
                })
            {
                for (from, row) in (0..).zip(expected) {
                    for (flag, (least, most)) in (0..).zip(row) {
                        let seen = wait(&mut **engine, from, flag, *least);
                        assert!(seen <= *most, "flag {flag} of rank {from} is {seen}");
                    }
                }
            }
        }
    }
}

/// Ranks in threads pass their staging round by round: who sees the flag sees the bytes, and
/// nobody overwrites what others still read.
///
/// # Panics
///
/// Where an engine does not conform.
pub fn staging_follows_flags(engines: Vec<Box<dyn Engine>>) {
    const WORDS: usize = 40;
    let ranks = engines.len() as u32;
    thread::scope(|scope| {
        for (mut engine, rank) in engines.into_iter().zip(0..ranks) {
            scope.spawn(move || {
                let engine = &mut *engine;
                let bytes = WORDS * 8;
                let user = Buffer::new(engine, bytes, true);
                let word = |rank: u32, round: u64| (u64::from(rank) << 48 | round).to_ne_bytes();
                for round in 1..=ROUNDS {
                    // Flag 1: all of the last round was read, so staging is free again.
                    (0..ranks).for_each(|peer| _ = wait(engine, peer, 1, round - 1));
                    user.write(0, &word(rank, round).repeat(WORDS));
                    if let Some(own) = staging(engine, rank) {
                        copy(engine, user.at(0), within(own, 0), bytes as u64);
                    }
                    engine.signal(Targets::All, 0, round).expect("a signal");
                    for peer in 0..ranks {
                        assert_eq!(wait(engine, peer, 0, round), round, "rank {peer} ran ahead");
                        if let Some(theirs) = staging(engine, peer) {
                            let src = within(theirs, 0);
                            let read =
                                Operation::Copy { src, dst: user.at(0), bytes: bytes as u64 };
                            run(engine, &read).expect("a copy");
                            let seen = user.read(0, bytes);
                            assert!(
                                seen == word(peer, round).repeat(WORDS),
                                "round {round}: {seen:?}"
                            );
                        }
                    }
                    engine.signal(Targets::All, 1, round).expect("a signal");
                }
                // Whoever is still reading needs this rank's staging and flags.
                (0..ranks).for_each(|peer| _ = wait(engine, peer, 1, ROUNDS));
                engine.signal(Targets::All, 2, 1).expect("a signal");
                (0..ranks).for_each(|peer| _ = wait(engine, peer, 2, 1));
                user.forget(engine);
            });
        }
    });
}
