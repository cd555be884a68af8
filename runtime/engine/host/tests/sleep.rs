//! Who goes to sleep in the moment in which another rank makes a post finds it all the same.

mod world;

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use stepccl_engine::{Board, Engine, Look};
use stepccl_plan::Targets;

/// Far longer than a wake-up takes on a busy machine.
const LOST: Duration = Duration::from_secs(5);

#[test]
fn no_post_is_slept_through() {
    const ROUNDS: u64 = 60_000;
    let mut engines = world::engines(2, 0);
    let (mut sleeper, mut owner) = (engines.remove(1), engines.remove(0));
    let turns = [const { AtomicU64::new(0) }; 2];
    // Both leave at once, but for some steps of the one or the other.
    let meet = |own: usize, round: u64| {
        turns[own].store(round, Ordering::Release);
        while turns[1 - own].load(Ordering::Acquire) < round {
            spin_loop();
        }
        let steps = [round / 8 % 8, round % 8][own];
        (0..steps).for_each(|_| spin_loop());
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                meet(0, round);
                // SAFETY:
                // - There is no data, and the other rank has read all posts before.
                unsafe { owner.post(Board::Collective, round, [round, 0], &[]).unwrap() };
                owner.ring(Targets::All).unwrap();
            }
        });
        for round in 1..=ROUNDS {
            meet(1, round);
            let start = Instant::now();
            let is_there = |engine: &dyn Engine| {
                engine.look(0, Board::Collective, round).unwrap() == Look::Here([round, 0])
            };
            while !is_there(&sleeper) {
                sleeper.park(&mut |engine| is_there(engine), LOST).unwrap();
                if start.elapsed() >= LOST {
                    // The other rank is to end too.
                    turns[1].store(u64::MAX, Ordering::Release);
                    panic!("post {round} was slept through");
                }
            }
        }
    });
}
