//! Futex words through two mappings, as two processes have them.

use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;
use std::time::{Duration, Instant};

use stepccl_memory::Segment;
use stepccl_memory::futex::{self, Woken};

const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_limit_ends_the_wait() {
    let segment = Segment::create("futex", 64).unwrap();
    let word = segment.view().atomic_u32(0).unwrap();
    let start = Instant::now();
    assert_eq!(futex::wait(word, 0, Duration::from_millis(20)), Ok(Woken::TimedOut));
    assert!(start.elapsed() >= Duration::from_millis(20));
    assert_eq!(futex::wait(word, 0, Duration::ZERO), Ok(Woken::TimedOut));
}

#[test]
fn a_changed_word_is_not_waited_for() {
    let segment = Segment::create("futex", 64).unwrap();
    let word = segment.view().atomic_u32(4).unwrap();
    word.store(1, Release);
    assert_eq!(futex::wait(word, 0, Duration::MAX), Ok(Woken::Changed));
}

#[test]
fn waking_nobody_is_no_error() {
    let segment = Segment::create("futex", 64).unwrap();
    assert_eq!(futex::wake(segment.view().atomic_u32(0).unwrap(), u32::MAX), Ok(0));
}

#[test]
#[cfg_attr(miri, ignore = "miri maps no file twice")]
fn no_round_of_ping_pong_is_lost_across_mappings() {
    const ROUNDS: u32 = 5_000;
    let own = Segment::create("futex", 64).unwrap();
    let peers = own.try_clone().unwrap();
    // Each side waits until the word is odd (even), then makes it even (odd).
    let play = |segment: &Segment, mine: u32| {
        let word = segment.view().atomic_u32(0).unwrap();
        for round in 0..ROUNDS {
            let turn = 2 * round + mine;
            loop {
                let seen = word.load(Acquire);
                if seen == turn {
                    break;
                }
                assert_ne!(futex::wait(word, seen, LONG), Ok(Woken::TimedOut));
            }
            word.store(turn + 1, Release);
            futex::wake(word, 1).unwrap();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| play(&own, 0));
        scope.spawn(|| play(&peers, 1));
    });
    assert_eq!(own.view().read_u32(0), Ok(2 * ROUNDS));
}
