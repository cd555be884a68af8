//! One rank of StepCCL, measured from Rust as `tests/perf/mpi_rank.c` measures an MPI from C; that
//! file says what the lines of the driver mean and what a sample is.
//!
//! `BENCH_SOCKET` is the driver's socket, `BENCH_STORE` a folder where ranks meet, `BENCH_RANK` and
//! `BENCH_RANKS` what they say.

mod buffer;
mod job;
mod operation;

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Instant;

use stepccl::{Communicator, Config, FileStore};

use job::Job;
use operation::Operation;

type Failure = Box<dyn Error>;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("perf rank: {error}");
            ExitCode::FAILURE
        }
    }
}

fn variable<T: FromStr>(name: &str) -> Result<T, Failure> {
    let text = std::env::var(name).map_err(|error| format!("{name}: {error}"))?;
    text.parse().map_err(|_| format!("{name}={text} cannot be read").into())
}

fn serve() -> Result<(), Failure> {
    let (rank, ranks) = (variable("BENCH_RANK")?, variable("BENCH_RANKS")?);
    bind_to_core(rank, ranks);
    let store = FileStore::open(&variable::<PathBuf>("BENCH_STORE")?)?;
    let communicator = Communicator::new(&store, "bench.0", rank, ranks, &Config::from_env()?)?;
    let mut driver = UnixStream::connect(variable::<String>("BENCH_SOCKET")?)?;
    let engine = communicator.stats().engine;
    writeln!(driver, "hello {rank} StepCCL {}, {engine} engine", env!("CARGO_PKG_VERSION"))?;
    for line in BufReader::new(driver.try_clone()?).lines() {
        let line = line?;
        if line == "quit" {
            return Ok(());
        }
        match obey(&communicator, &line) {
            Ok(answer) => writeln!(driver, "ok{answer}")?,
            Err(error) => writeln!(driver, "error {}", error.to_string().replace('\n', " "))?,
        }
    }
    Ok(())
}

/// Do what one line of the driver says.
fn obey(communicator: &Communicator, line: &str) -> Result<String, Failure> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let job = |name: &str, bytes: &str| -> Result<Job<'_>, Failure> {
        let operation = Operation::named(name).ok_or_else(|| format!("no operation {name}"))?;
        Ok(Job::new(communicator, operation, bytes.parse()?))
    };
    match words[..] {
        ["check", name, bytes] => {
            let wrong = job(name, bytes)?.first_wrong()?;
            wrong.map_or_else(
                || Ok(String::new()),
                |i| {
                    let rank = communicator.rank();
                    Err(format!("{name} of {bytes} bytes is wrong on rank {rank} at element {i}")
                        .into())
                },
            )
        }
        ["measure", name, bytes, warmup, calls, samples] => {
            let times =
                Times { warmup: warmup.parse()?, calls: calls.parse()?, samples: samples.parse()? };
            measure(communicator, &mut job(name, bytes)?, &times)
        }
        _ => Err(format!("cannot do: {line}").into()),
    }
}

struct Times {
    warmup: u32,
    calls: u32,
    samples: u32,
}

/// Mean nanoseconds of a call, one number a sample.
fn measure(
    communicator: &Communicator,
    job: &mut Job<'_>,
    times: &Times,
) -> Result<String, Failure> {
    for _ in 0..times.warmup {
        job.call()?;
    }
    let mut answer = String::new();
    for _ in 0..times.samples {
        communicator.barrier()?;
        let start = Instant::now();
        for _ in 0..times.calls {
            job.call()?;
        }
        let ns = start.elapsed().as_secs_f64() * 1e9 / f64::from(times.calls);
        answer.push_str(&format!(" {ns:.1}"));
    }
    Ok(answer)
}

/// A core of its own for each rank, where there are enough; all libraries are placed alike.
fn bind_to_core(rank: u32, ranks: u32) {
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;
    let me = Pid::from_raw(0);
    let Ok(allowed) = sched_getaffinity(me) else { return };
    let cores: Vec<usize> =
        (0..CpuSet::count()).filter(|c| allowed.is_set(*c).unwrap_or(false)).collect();
    let mut one = CpuSet::new();
    if cores.len() >= ranks as usize && one.set(cores[rank as usize]).is_ok() {
        // Where it is refused, the figures are those of the system's placement.
        let _ = sched_setaffinity(me, &one);
    }
}
