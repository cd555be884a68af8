//! A rank that is killed at any moment: all others say who it was, and nothing stays behind.
//!
//! `STEPCCL_TEST_KILLS=200 cargo test --release -p stepccl --test kills -- --nocapture` makes 200
//! trials and prints how long the others took. The test starts this very binary again with
//! [`RANK`] set; the child runs `child` alone.

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Random, config};
use stepccl::{Communicator, Error, FileStore, LossReason, Outcome, ReduceOp};

const RANK: &str = "STEPCCL_TEST_KILL_RANK";
const STORE: &str = "STEPCCL_TEST_KILL_STORE";
const RANKS: u32 = 3;
/// Rank that is killed.
const VICTIM: u32 = 1;
/// What a child prints once it is at work.
const AT_WORK: &str = "at work";

/// A child process that does not outlive the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(rank: u32, store: &Path) -> Process {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(RANK, rank.to_string())
        .env(STORE, store)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    Process(child)
}

/// Short and long, with and without sums, with and without a root.
fn mixed(comm: &Communicator, turn: usize) -> Outcome {
    let long = 100_000 + 1000 * (turn % 7);
    comm.all_reduce_in_place(&mut [1.0f32; 5], ReduceOp::Sum)?;
    comm.all_reduce_in_place(&mut vec![1.0f32; long], ReduceOp::Sum)?;
    comm.broadcast(&mut vec![1u8; 3 * long], turn as u32 % RANKS)?;
    let part = vec![1i64; long / 4];
    comm.all_gather(&part, &mut vec![0; part.len() * RANKS as usize])?;
    let next = (comm.rank() + 1) % RANKS;
    let before = (comm.rank() + RANKS - 1) % RANKS;
    let (mut received, sent) = (vec![0u8; long], vec![1u8; long]);
    comm.group().send(&sent, next).recv(&mut received, before).run()?;
    comm.barrier()
}

#[test]
fn child() {
    let Ok(rank) = std::env::var(RANK) else { return };
    let store = FileStore::open(Path::new(&std::env::var_os(STORE).unwrap())).unwrap();
    let comm =
        Communicator::new(&store, "kills.0", rank.parse().unwrap(), RANKS, &config()).unwrap();
    println!("{AT_WORK}");
    let error = (0..).find_map(|turn| mixed(&comm, turn).err()).unwrap();
    let blamed = match &error {
        Error::PeerLost { reason: LossReason::Failed { culprit }, .. } => *culprit,
        Error::PeerLost { peer, reason: LossReason::Died, .. } => *peer,
        other => panic!("{other}"),
    };
    assert_eq!(blamed, VICTIM, "{error}");
}

/// How long the others took to end after the kill.
fn trial(random: &mut Random) -> Duration {
    let store = tempfile::tempdir().unwrap();
    let mut processes: Vec<_> = (0..RANKS).map(|rank| start(rank, store.path())).collect();
    // Kept open: whoever prints into a pipe that is gone fails.
    let mut outputs = Vec::new();
    for process in &mut processes {
        let mut output = BufReader::new(process.0.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains(AT_WORK) {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "a rank failed at start");
        }
        outputs.push(output);
    }
    std::thread::sleep(Duration::from_micros(random.below(60_000) as u64));
    let killed = Instant::now();
    processes[VICTIM as usize].0.kill().unwrap();
    processes[VICTIM as usize].0.wait().unwrap();
    for process in &mut processes {
        let until = killed + Duration::from_secs(30);
        while process.0.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "a rank hangs");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    let took = killed.elapsed();
    for (rank, process) in processes.iter_mut().enumerate() {
        let status = process.0.wait().unwrap();
        assert!(status.success() || rank == VICTIM as usize, "rank {rank}: {status}");
    }
    took
}

#[test]
fn a_rank_that_is_killed_at_any_moment_is_named_by_all_others() {
    let trials = std::env::var("STEPCCL_TEST_KILLS").map_or(10, |n| n.parse().unwrap());
    let mut random = Random::new();
    let mut took: Vec<_> = (0..trials).map(|_| trial(&mut random)).collect();
    took.sort_unstable();
    if let (Some(median), Some(longest)) = (took.get(trials / 2), took.last()) {
        println!(
            "{trials} kills: the others ended after {median:.0?} (median), {longest:.0?} at most"
        );
    }
}
