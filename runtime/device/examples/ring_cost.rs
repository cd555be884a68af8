//! What a ring in the process costs: one thread on both sides, and two threads back and forth.
//!
//! `cargo run --release -p stepccl-device --example ring_cost`

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use stepccl_device::{CompletionEntry, Push, Ring, RingError, SubmissionEntry, Taken, Waited};

const ROUNDS: u32 = 1000;
const BATCHES: u32 = 100;

/// Nanoseconds of one round in the best batch: the others were disturbed.
fn best(what: &str, mut round: impl FnMut() -> Result<(), RingError>) -> Result<(), RingError> {
    let mut best = Duration::MAX;
    for _ in 0..BATCHES {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            round()?;
        }
        best = best.min(start.elapsed());
    }
    println!("{what:40} {:8.1} ns", best.as_nanos() as f64 / f64::from(ROUNDS));
    Ok(())
}

/// Push, publish, take, complete, pop on one thread: the instructions without the cache misses.
fn one_thread() -> Result<(), RingError> {
    let (mut client, mut service) = Ring::in_process(64)?;
    best("one operation, both sides on one thread", || {
        let push = client.push(black_box(&SubmissionEntry::default()))?;
        assert_eq!(push, Push::Queued);
        client.publish()?;
        if let Taken::Entry(entry) = service.take()? {
            service.complete(&CompletionEntry::moved(entry.user_data, 0))?;
            service.notify()?;
        }
        black_box(client.pop()?);
        Ok(())
    })
}

/// One operation at a time, each side looking for `spins` times before it sleeps.
fn two_threads(spins: u32) -> Result<(), RingError> {
    let (mut client, mut service) = Ring::in_process(64)?;
    let worker = thread::spawn(move || -> Result<(), RingError> {
        let mut idle = 0;
        loop {
            if let Taken::Entry(entry) = service.take()? {
                service.complete(&CompletionEntry::moved(entry.user_data, 0))?;
                service.notify()?;
                idle = 0;
            } else if idle < spins {
                idle += 1;
                std::hint::spin_loop();
            } else if service.wait(Duration::from_secs(5))? == Waited::Gone {
                return Ok(());
            }
        }
    });
    best(&format!("round trip of two threads, {spins} spins"), || {
        let push = client.push(&SubmissionEntry::default())?;
        assert_eq!(push, Push::Queued);
        client.publish()?;
        let mut idle = 0;
        while client.pop()?.is_none() {
            if idle < spins {
                idle += 1;
                std::hint::spin_loop();
            } else {
                client.wait(Duration::from_secs(5))?;
            }
        }
        Ok(())
    })?;
    drop(client);
    worker.join().unwrap_or(Ok(()))
}

fn main() -> Result<(), RingError> {
    one_thread()?;
    two_threads(2000)?;
    two_threads(0)
}
