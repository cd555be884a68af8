//! What the pieces of the host engine cost: flags, small exchanges, submissions, copies, adds.
//!
//! `cargo run --release --example latency -p stepccl-engine-host`, on a machine with two idle
//! cores. Each figure is the median of several runs.

use std::hint::{black_box, spin_loop};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use stepccl_engine::{Address, Engine, Operation, Submission, UserMemory};
use stepccl_engine_host::{HostConfig, HostEngine, PeerLink};
use stepccl_memory::Segment;
use stepccl_plan::{DType, ReduceOp, Targets};

const RUNS: usize = 9;
const MIB: usize = 1 << 20;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    println!("{:<44} {:>12}", "what, two threads on a core each", "median");
    let [first, second] = pair()?;
    let barrier = Barrier::new(2);
    let (mut first, mut second) = (Rank::new(first, 0)?, Rank::new(second, 1)?);
    let results = thread::scope(|scope| {
        let other = scope.spawn(|| -> Result<_, Failure> {
            pin(1)?;
            second.play(&barrier)
        });
        pin(0)?;
        let results = first.play(&barrier);
        other.join().map_err(|_| "the second rank failed")??;
        results
    })?;
    let [ping, exchange, asleep] = results;
    row("flag ping-pong, one way", &time(ping));
    row("8 B exchange: copy, signal, wait, read", &time(exchange));
    row("flag ping-pong asleep, one way", &time(asleep));

    println!();
    println!("{:<44} {:>12}", "what, one thread", "median");
    let calls = 100_000;
    let small = first.submissions(calls, 8)?;
    row("submit a copy of 8 B", &time(small));
    row("register and unregister", &time(first.registrations(calls)?));
    row("read a peer's flag", &time(first.flag_reads(calls)?));
    row("signal one peer", &time(first.signals(calls)?));
    for (name, bytes) in [("64 KiB", 64 << 10), ("1 MiB", MIB), ("32 MiB", 32 * MIB)] {
        let copy = first.submissions((64 * MIB / bytes).max(4), bytes)?;
        row(&format!("copy of {name}"), &rate(bytes, copy));
        let add = first.additions((64 * MIB / bytes).max(4), bytes)?;
        row(&format!("add of two f32 arrays of {name}"), &rate(bytes, add));
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
    let links = [link(1)?, link(0)?];
    let [to_second, to_first] = links;
    Ok([
        HostEngine::new(config[0], again(&segments[0])?, vec![to_second])?,
        HostEngine::new(config[1], again(&segments[1])?, vec![to_first])?,
    ])
}

/// One rank with memory of its own.
struct Rank {
    engine: HostEngine,
    rank: u32,
    memory: Vec<u64>,
    user: Address,
    /// Value of flag 0 so far.
    round: u64,
}

impl Rank {
    fn new(mut engine: HostEngine, rank: u32) -> Result<Self, Failure> {
        let mut memory = vec![1u64; 3 * 32 * MIB / 8];
        let user = UserMemory {
            base: memory.as_mut_ptr().cast(),
            bytes: (memory.len() * 8) as u64,
            writable: true,
            streaming: false,
        };
        // SAFETY:
        // - The memory lives as long as the engine: both are in this rank, which never reads or
        //   writes it but by the engine.
        let region = unsafe { engine.register(user) }?;
        Ok(Self { engine, rank, memory, user: Address::start_of(region), round: 0 })
    }

    /// What both ranks do together: seconds of a flag, of an exchange, and of a flag asleep.
    fn play(&mut self, barrier: &Barrier) -> Result<[f64; 3], Failure> {
        barrier.wait();
        let ping = median(|| self.ping_pong(20_000, Duration::MAX))? / 2.0;
        barrier.wait();
        let exchange = median(|| self.exchange(20_000))?;
        barrier.wait();
        let asleep = median(|| self.ping_pong(2_000, Duration::ZERO))? / 2.0;
        Ok([ping, exchange, asleep])
    }

    fn wait(&mut self, value: u64, spin: Duration) -> Result<(), Failure> {
        let peer = 1 - self.rank;
        while self.engine.flag(peer, 0)? < value {
            if spin.is_zero() {
                let ready =
                    &mut |engine: &dyn Engine| engine.flag(peer, 0).is_ok_and(|seen| seen >= value);
                self.engine.park(ready, Duration::from_secs(10))?;
            } else {
                spin_loop();
            }
        }
        Ok(())
    }

    /// Seconds of a round trip.
    fn ping_pong(&mut self, rounds: u64, spin: Duration) -> Result<f64, Failure> {
        let start = Instant::now();
        for _ in 0..rounds {
            self.round += 1;
            let (round, to) = (self.round, Targets::One(1 - self.rank));
            if self.rank == 0 {
                self.engine.signal(to, 0, round)?;
                self.wait(round, spin)?;
            } else {
                self.wait(round, spin)?;
                self.engine.signal(to, 0, round)?;
            }
        }
        Ok(start.elapsed().as_secs_f64() / rounds as f64)
    }

    /// Seconds of an all_reduce of 8 bytes: both write their staging, signal, wait, and add.
    fn exchange(&mut self, rounds: u64) -> Result<f64, Failure> {
        let peer = 1 - self.rank;
        let staging = [0, 1].map(|rank| self.engine.staging(rank).map(|staging| staging.base));
        let [Some(first), Some(second)] = staging else { return Err("no staging".into()) };
        let (own, theirs) = if self.rank == 0 { (first, second) } else { (second, first) };
        let start = Instant::now();
        for _ in 0..rounds {
            self.round += 1;
            // Two slots: a rank is at most one round ahead of the other.
            let slot = self.round % 2 * 64;
            let (own, theirs) = (own.checked_add(slot)?, theirs.checked_add(slot)?);
            done(self.engine.submit(&Operation::Copy { src: self.user, dst: own, bytes: 8 })?)?;
            self.engine.signal(Targets::One(peer), 0, self.round)?;
            self.wait(self.round, Duration::MAX)?;
            done(self.engine.submit(&Operation::Reduce {
                srcs: &[own, theirs],
                dst: self.user,
                count: 2,
                dtype: DType::F32,
                op: ReduceOp::Max,
                divisor: 1,
                scale: None,
            })?)?;
        }
        Ok(start.elapsed().as_secs_f64() / rounds as f64)
    }

    /// Seconds of a copy within user memory.
    fn submissions(&mut self, calls: usize, bytes: usize) -> Result<f64, Failure> {
        let (src, dst) = (self.user, self.user.checked_add(32 * MIB as u64)?);
        let copy = Operation::Copy { src, dst, bytes: bytes as u64 };
        per_call(calls, || done(self.engine.submit(black_box(&copy))?))
    }

    /// Seconds of an addition within user memory.
    fn additions(&mut self, calls: usize, bytes: usize) -> Result<f64, Failure> {
        let at = |index: u64| self.user.checked_add(index * 32 * MIB as u64);
        let srcs = [at(0)?, at(1)?];
        let add = Operation::Reduce {
            srcs: &srcs,
            dst: at(2)?,
            count: (bytes / 4) as u64,
            dtype: DType::F32,
            op: ReduceOp::Sum,
            divisor: 1,
            scale: None,
        };
        per_call(calls, || done(self.engine.submit(black_box(&add))?))
    }

    fn registrations(&mut self, calls: usize) -> Result<f64, Failure> {
        let base = self.memory.as_mut_ptr().cast();
        let user = UserMemory { base, bytes: 64, writable: false, streaming: false };
        per_call(calls, || {
            // SAFETY:
            // - The memory is this rank's, and no operation uses the region.
            let region = unsafe { self.engine.register(black_box(user)) }?;
            Ok(self.engine.unregister(region)?)
        })
    }

    fn flag_reads(&self, calls: usize) -> Result<f64, Failure> {
        per_call(calls, || {
            black_box(self.engine.flag(black_box(1), black_box(0))?);
            Ok(())
        })
    }

    fn signals(&mut self, calls: usize) -> Result<f64, Failure> {
        per_call(calls, || Ok(self.engine.signal(Targets::One(1), 3, 1)?))
    }
}

fn done(submission: Submission) -> Result<(), Failure> {
    match submission {
        Submission::Done => Ok(()),
        other => Err(format!("{other:?} where there are no channels").into()),
    }
}

fn per_call(calls: usize, mut call: impl FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
    median(|| {
        let start = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        Ok(start.elapsed().as_secs_f64() / calls as f64)
    })
}

fn median(mut run: impl FnMut() -> Result<f64, Failure>) -> Result<f64, Failure> {
    let mut seconds = (0..RUNS).map(|_| run()).collect::<Result<Vec<_>, _>>()?;
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[RUNS / 2])
}

/// Stay on the `index`-th core that this process may use; on the last where there are fewer.
fn pin(index: usize) -> Result<(), Failure> {
    let allowed = sched_getaffinity(Pid::from_raw(0))?;
    let cores: Vec<_> =
        (0..CpuSet::count()).filter(|core| allowed.is_set(*core).unwrap_or(false)).collect();
    let core = cores.get(index).or(cores.last()).ok_or("no core")?;
    let mut one = CpuSet::new();
    one.set(*core)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &one)?)
}

fn row(what: &str, figure: &str) {
    println!("{what:<44} {figure:>12}");
}

fn time(seconds: f64) -> String {
    format!("{:.1} ns", seconds * 1e9)
}

fn rate(bytes: usize, seconds: f64) -> String {
    format!("{:.1} GB/s", bytes as f64 / seconds / 1e9)
}
