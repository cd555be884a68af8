//! Starts the ranks of a command on this machine, one process each.

use std::error::Error;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

/// Rank of a process that this command started.
pub(crate) const RANK: &str = "STEPCCL_BENCH_RANK";
/// Directory of the store of the processes that this command started.
pub(crate) const STORE: &str = "STEPCCL_BENCH_STORE";

/// How long the other ranks may go on after one has failed: long enough to name it.
const GRACE: Duration = Duration::from_secs(5);

/// Run this very command once for each rank; rank 0 has the terminal. Success where all succeed.
pub(crate) fn ranks(ranks: u32) -> Result<ExitCode, Box<dyn Error>> {
    let store = tempfile::tempdir()?;
    let mut children = Vec::new();
    for rank in 0..ranks {
        match start(rank, store.path()) {
            Ok(child) => children.push(Some(child)),
            Err(error) => {
                end(&mut children);
                return Err(format!("starting rank {rank}: {error}").into());
            }
        }
    }
    let mut failed = None;
    while children.iter().any(Option::is_some) {
        for (rank, slot) in children.iter_mut().enumerate() {
            let Some(child) = slot else { continue };
            if let Some(status) = child.try_wait()? {
                *slot = None;
                if !status.success() && failed.is_none() {
                    eprintln!("stepccl: rank {rank} ended with {status}");
                    failed = Some(std::time::Instant::now());
                }
            }
        }
        if failed.is_some_and(|since| since.elapsed() > GRACE) {
            end(&mut children);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(if failed.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn start(rank: u32, store: &Path) -> io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(RANK, rank.to_string())
        .env(STORE, store)
        .stdin(Stdio::null())
        .spawn()
}

/// End what still runs, and only that.
fn end(children: &mut [Option<Child>]) {
    for child in children.iter_mut().flatten() {
        // It may have ended by itself in between.
        let _ = child.kill();
        let _ = child.wait();
    }
    children.iter_mut().for_each(|c| *c = None);
}
