//! What it costs a collective to say what was called, and to compare that with what a peer called.
//!
//! `cargo run --release --example compare -p stepccl-engine-host`, on a machine with two idle cores.
//! A short collective pays nothing for it: its data travels in the same line.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use stepccl_engine::{Board, Engine, Look};
use stepccl_engine_host::{HostConfig, HostEngine, PeerLink};
use stepccl_memory::Segment;

/// As many posts as a board has places: nobody needs to wait for one within them.
const BATCH: u64 = 8;
const BATCHES: usize = 20_000;
/// Words of a call: what they say does not matter here.
const CALLED: [u64; 2] = [0x0103, 1 << 20];

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let [mut first, mut second] = pair()?;
    let barrier = Barrier::new(2);
    let times = thread::scope(|scope| {
        let other = scope.spawn(|| peer(&mut second, &barrier));
        let times = measure(&mut first, &barrier);
        other.join().map_err(|_| "the peer failed")??;
        times
    })?;
    let [clock, post, compare] = times.map(median);
    let each = |time: f64| (time - clock) / BATCH as f64;
    println!("{:<58} {:>8}", "per collective and peer, medians of two threads", "ns");
    println!("{:<58} {:>8.1}", "post what was called", each(post));
    println!(
        "{:<58} {:>8.1}",
        "see a peer's post, written on another core, and compare",
        each(compare)
    );
    println!("{:<58} {:>8.1}", "both", each(post) + each(compare));
    Ok(())
}

/// Nanoseconds of a look at the clock, of a batch of posts, and of looks at a batch of the peer's.
fn measure(engine: &mut HostEngine, barrier: &Barrier) -> Result<[Vec<f64>; 3], Failure> {
    pin(0)?;
    let mut times: [Vec<f64>; 3] = Default::default();
    for batch in 0..BATCHES as u64 {
        // The peer has posted.
        barrier.wait();
        let start = Instant::now();
        let clock = Instant::now();
        for number in batch * BATCH..(batch + 1) * BATCH {
            // SAFETY:
            // - There is no data.
            unsafe { engine.post(Board::Collective, number, black_box(CALLED), &[])? };
        }
        let posted = Instant::now();
        let mut same = true;
        for number in batch * BATCH..(batch + 1) * BATCH {
            same &= engine.look(1, Board::Collective, number)? == Look::Here(black_box(CALLED));
        }
        let compared = Instant::now();
        if !same {
            return Err("a post of the peer is not what it posted".into());
        }
        let ends = [(start, clock), (clock, posted), (posted, compared)];
        for (list, (from, to)) in times.iter_mut().zip(ends) {
            list.push((to - from).as_nanos() as f64);
        }
        // The peer looks at these, and may write its own again.
        barrier.wait();
    }
    Ok(times)
}

fn peer(engine: &mut HostEngine, barrier: &Barrier) -> Result<(), Failure> {
    pin(1)?;
    for batch in 0..BATCHES as u64 {
        for number in batch * BATCH..(batch + 1) * BATCH {
            // SAFETY:
            // - There is no data.
            unsafe { engine.post(Board::Collective, number, CALLED, &[])? };
        }
        barrier.wait();
        barrier.wait();
        for number in batch * BATCH..(batch + 1) * BATCH {
            black_box(engine.look(0, Board::Collective, number)?);
        }
    }
    Ok(())
}

/// Two connected engines, as two processes have them.
fn pair() -> Result<[HostEngine; 2], Failure> {
    let config = [0, 1].map(|rank| HostConfig::new(rank, 2));
    let segments =
        [HostEngine::create_segment(&config[0])?, HostEngine::create_segment(&config[1])?];
    let again = |segment: &Segment| -> Result<Segment, Failure> {
        Ok(Segment::open(segment.fd().try_clone_to_owned()?, segment.bytes())?)
    };
    let link = |rank: u32| -> Result<PeerLink, Failure> {
        let segment = again(&segments[rank as usize])?;
        Ok(PeerLink { rank, pid: std::process::id(), segment, socket: None })
    };
    let [to_second, to_first] = [link(1)?, link(0)?];
    Ok([
        HostEngine::new(config[0], again(&segments[0])?, vec![to_second])?,
        HostEngine::new(config[1], again(&segments[1])?, vec![to_first])?,
    ])
}

/// Stay on the `index`-th core of those that this process may use.
fn pin(index: usize) -> Result<(), Failure> {
    let allowed = sched_getaffinity(Pid::from_raw(0))?;
    let mut cores = (0..CpuSet::count()).filter(|core| allowed.is_set(*core).unwrap_or(false));
    let Some(core) = cores.nth(index) else { return Ok(()) };
    let mut one = CpuSet::new();
    one.set(core)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &one)?)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
