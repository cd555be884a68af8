//! Starts the ranks of a command on this machine, one process each, and sees them all end.
//!
//! A rank is this very command with [`RANK`] set. It tells its own errors; this side tells what a
//! rank could not tell itself. No rank outlives this process, however it ends.

mod external;
mod role;
mod seat;
mod signals;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::errno::Errno;

pub(crate) use external::External;
use external::Launcher;
pub(crate) use role::Role;
pub(crate) use seat::Seat;
use signals::{Event, Signals};
use world::World;

use crate::outcome::{OUTPUT_CLOSED, say};

/// Rank of a process that this command started.
const RANK: &str = "STEPCCL_BENCH_RANK";
/// Directory of the store of the processes that this command started.
const STORE: &str = "STEPCCL_BENCH_STORE";
/// Process that started the rank.
const PARENT: &str = "STEPCCL_BENCH_PARENT";

/// How long the other ranks may go on after one has failed: long enough to name it.
const GRACE: Duration = Duration::from_secs(5);

/// Why ranks could not be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    #[error(
        "no directory for the ranks to meet in {folder}: {source}; set TMPDIR to one that can be written"
    )]
    Store { folder: PathBuf, source: std::io::Error },
    #[error(
        "rank {rank} did not start: {source}; give fewer --ranks, or raise the limit of processes (ulimit -u)"
    )]
    Start { rank: u32, source: std::io::Error },
    #[error("rank {rank} cannot be waited for: {source}")]
    Wait { rank: u32, source: std::io::Error },
    #[error("signals cannot be received: {0}")]
    Signals(#[from] Errno),
    #[error("{RANK} is set, and {missing} is not as this command sets it; unset {RANK}")]
    Role { missing: &'static str },
    #[error(
        "{name}={value}: must be a number as a launcher sets it; with --here ranks are started here"
    )]
    Variable { name: &'static str, value: String },
    #[error("{launcher} says rank {rank} of {ranks}; with --here ranks are started here")]
    Place { launcher: Launcher, rank: u32, ranks: u32 },
    #[error(
        "{0} does not say where rank 0 is; set MASTER_ADDR and MASTER_PORT to a host and a free port for every rank"
    )]
    Address(Launcher),
    #[error("the process that started rank {rank} is gone")]
    Orphan { rank: u32 },
}

/// Run this very command once for each rank; rank 0 has the terminal. Success where all succeed.
///
/// # Errors
///
/// [`LaunchError`]; a rank that fails is no error here but an exit code.
pub(crate) fn ranks(ranks: u32) -> Result<ExitCode, LaunchError> {
    let signals = Signals::take()?;
    let store = tempfile::tempdir()
        .map_err(|source| LaunchError::Store { folder: std::env::temp_dir(), source })?;
    // Dropped before the store: ranks end before their directory goes.
    let mut world = World::default();
    for rank in 0..ranks {
        world.start(rank, store.path())?;
    }
    let mut deadline = None;
    let mut code = ExitCode::SUCCESS;
    loop {
        for end in world.reap()? {
            if end.code == Some(i32::from(OUTPUT_CLOSED)) {
                return Ok(ExitCode::from(OUTPUT_CLOSED));
            }
            if end.failed() {
                code = ExitCode::FAILURE;
                deadline = deadline.or(Some(Instant::now() + GRACE));
                if let Some(words) = end.words() {
                    say(format_args!("stepccl: {words}"));
                }
            }
        }
        if world.is_empty() {
            return Ok(code);
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            let left = world.running();
            say(format_args!("stepccl: still running {GRACE:.0?} after a failure, ended: {left}"));
            return Ok(code);
        }
        if let Event::End(signal) = signals.wait(deadline)? {
            return Ok(ExitCode::from(128 + signal as u8));
        }
    }
}
