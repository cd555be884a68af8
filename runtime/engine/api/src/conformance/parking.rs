//! A park ends when it should, and no wake-up is lost.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use stepccl_plan::Targets;

use crate::Engine;

use super::drive::{PATIENCE, wait};

/// Rounds in which every rank parks for every other.
const ROUNDS: u64 = 5_000;
/// Parks that race with a wake.
const WAKES: u32 = 3_000;
/// Well below [`PATIENCE`], well above any delay of a loaded machine that is not a lost wake-up.
const SOON: Duration = Duration::from_secs(10);

/// By its limit, by a wake before or during it, by readiness, and by a signal.
///
/// # Panics
///
/// Where an engine does not conform.
pub fn parks_end(mut engines: Vec<Box<dyn Engine>>) {
    let engine = &mut *engines[0];
    let limit = Duration::from_millis(10);
    settle(engine);
    let start = Instant::now();
    engine.park(&mut |_| false, limit).expect("a park");
    let slept = start.elapsed();
    assert!(slept < SOON, "a limit of {limit:?} took {slept:?}");
    engine.park(&mut |_| false, Duration::ZERO).expect("a park without time");

    settle(engine);
    let mut asked = 0;
    let start = Instant::now();
    engine
        .park(
            &mut |_| {
                asked += 1;
                true
            },
            PATIENCE,
        )
        .expect("a park");
    assert!(asked > 0, "nobody asked whether there is something to wait for");
    assert!(start.elapsed() < SOON, "slept though ready");

    let waker = engine.waker();
    waker.wake();
    let start = Instant::now();
    engine.park(&mut |_| false, PATIENCE).expect("a park");
    assert!(start.elapsed() < SOON, "slept through an earlier wake");

    // A wake at any moment of a park ends it.
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..WAKES {
                barrier.wait();
                (0..round % 200).for_each(|_| std::hint::spin_loop());
                waker.wake();
            }
        });
        for round in 0..WAKES {
            barrier.wait();
            let start = Instant::now();
            engine.park(&mut |_| false, PATIENCE).expect("a park");
            assert!(start.elapsed() < SOON, "wake {round} was lost");
        }
    });
}

/// Ranks in threads wait for one another by parking at once, thousands of times.
///
/// # Panics
///
/// Where an engine does not conform.
pub fn wakes_are_not_lost(engines: Vec<Box<dyn Engine>>) {
    let ranks = engines.len() as u32;
    let start = Instant::now();
    thread::scope(|scope| {
        for (mut engine, rank) in engines.into_iter().zip(0..ranks) {
            scope.spawn(move || {
                let engine = &mut *engine;
                for round in 1..=ROUNDS {
                    // A ring of ranks: each waits for the one before, so all but one sleep.
                    let before = (rank + ranks - 1) % ranks;
                    let due = if rank == 0 { round - 1 } else { round };
                    if ranks > 1 {
                        wait(engine, before, 3, due);
                    }
                    let to = if round % 2 == 0 {
                        Targets::All
                    } else {
                        Targets::One((rank + 1) % ranks)
                    };
                    engine.signal(to, 3, round).expect("a signal");
                }
                (0..ranks).for_each(|peer| _ = wait(engine, peer, 3, ROUNDS));
                assert_eq!(engine.counters().signals, ROUNDS);
                // Nobody leaves while others look at its flags.
                engine.signal(Targets::All, 4, 1).expect("a signal");
                (0..ranks).for_each(|peer| _ = wait(engine, peer, 4, 1));
            });
        }
    });
    assert!(start.elapsed() < PATIENCE, "{ROUNDS} rounds took {:?}", start.elapsed());
}

/// Use up what earlier events left, so that the next park is a fresh one.
fn settle(engine: &mut dyn Engine) {
    for _ in 0..2 {
        engine.park(&mut |_| true, Duration::ZERO).expect("a park");
    }
}
