//! Ranks as processes, and as processes with several ranks each; and one that is killed.
//!
//! The test starts this very binary again with [`ROLE`] set; the child runs `child` alone.

mod common;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::config;
use stepccl::{Communicator, Error, FileStore, LossReason, ReduceOp};

/// What a child does: `work`, or `die` for the rank that ends itself.
const ROLE: &str = "STEPCCL_TEST_ROLE";
const RANKS: &str = "STEPCCL_TEST_RANKS";
const WORLD: &str = "STEPCCL_TEST_WORLD";
const STORE: &str = "STEPCCL_TEST_STORE";

/// A child process that does not outlive the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    /// Start the ranks of `ranks` (as `0,1`) of a world of `world`.
    fn start(role: &str, ranks: &str, world: u32, store: &Path) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env(RANKS, ranks)
            .env(WORLD, world.to_string())
            .env(STORE, store)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    fn succeeds(&mut self, limit: Duration) {
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                assert!(status.success(), "a rank failed: {status}");
                return;
            }
            assert!(Instant::now() < until, "a rank hangs");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let world: u32 = std::env::var(WORLD).unwrap().parse().unwrap();
    let ranks = std::env::var(RANKS).unwrap();
    let store = FileStore::open(Path::new(&std::env::var_os(STORE).unwrap())).unwrap();
    std::thread::scope(|scope| {
        for rank in ranks.split(',').map(|r| r.parse::<u32>().unwrap()) {
            let (store, role) = (&store, &role);
            scope.spawn(move || {
                let comm = Communicator::new(store, "processes.0", rank, world, &config()).unwrap();
                work(&comm, world);
                match role.as_str() {
                    "die" => {
                        // No destructor runs: as if it were killed in the middle of its work.
                        std::thread::spawn(|| {
                            std::thread::sleep(Duration::from_millis(50));
                            std::process::abort();
                        });
                        mourn(&comm, world);
                    }
                    "mourn" => mourn(&comm, world),
                    _ => {}
                }
            });
        }
    });
}

fn work(comm: &Communicator, world: u32) {
    for count in [1usize, 100, 10_000, 1_000_000] {
        let mut data: Vec<i64> = (0..count as i64).map(|i| i + i64::from(comm.rank())).collect();
        comm.all_reduce_in_place(&mut data, ReduceOp::Sum).unwrap();
        let ranks = i64::from(world);
        let base = ranks * (ranks - 1) / 2;
        for (i, v) in (0..).zip(&data) {
            assert_eq!(*v, i * ranks + base);
        }
    }
    let half = comm.split(Some(comm.rank() % 2), 0).unwrap().unwrap();
    let mut data = [i64::from(comm.rank()) + 1; 3];
    half.all_reduce_in_place(&mut data, ReduceOp::Min).unwrap();
    assert_eq!(data, [i64::from(comm.rank() % 2) + 1; 3]);
    for count in [10, 5_000, 700_001] {
        let own: Vec<i64> = (0..count).map(|i| i << 8 | i64::from(comm.rank())).collect();
        let mut all = vec![0; own.len() * world as usize];
        comm.all_gather(&own, &mut all).unwrap();
        let expected = (0..i64::from(world)).flat_map(|r| (0..count).map(move |i| i << 8 | r));
        assert!(expected.eq(all.iter().copied()), "all_gather of {count}");
        let mut back = vec![0; all.len()];
        comm.all_to_all(&all, &mut back).unwrap();
        let me = i64::from(comm.rank());
        let expected = (0..world).flat_map(|_| (0..count).map(move |i| i << 8 | me));
        assert!(expected.eq(back.iter().copied()), "all_to_all of {count}");
        let mut data = own.clone();
        comm.broadcast(&mut data, world - 1).unwrap();
        let root = i64::from(world - 1);
        assert!((0..count).map(|i| i << 8 | root).eq(data.iter().copied()), "broadcast of {count}");
    }
    comm.barrier().unwrap();
}

/// The last rank dies: every other must say so, soon.
fn mourn(comm: &Communicator, world: u32) {
    let started = Instant::now();
    let mut long = vec![1u8; 3 << 20];
    let error = loop {
        let short = comm.all_reduce_in_place(&mut [1.0f32; 5], ReduceOp::Sum);
        let both = short.and_then(|()| comm.broadcast(&mut long, world - 1));
        if let Err(error) = both {
            break error;
        }
    };
    let Error::PeerLost { peer, reason, .. } = &error else { panic!("{error}") };
    match reason {
        LossReason::Died => assert_eq!(*peer, world - 1, "{error}"),
        LossReason::Failed { culprit } => assert_eq!(*culprit, world - 1, "{error}"),
        other => panic!("{other}: {error}"),
    }
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}: {error}", started.elapsed());
}

fn together(processes: &[(&str, &str)], world: u32) {
    let store = tempfile::tempdir().unwrap();
    let mut running: Vec<_> = processes
        .iter()
        .map(|(role, ranks)| (*role, Process::start(role, ranks, world, store.path())))
        .collect();
    for (role, process) in &mut running {
        if *role != "die" {
            process.succeeds(Duration::from_secs(60));
        }
    }
}

#[test]
fn ranks_as_processes() {
    together(&[("work", "0"), ("work", "1")], 2);
    together(&[("work", "0"), ("work", "1"), ("work", "2"), ("work", "3")], 4);
}

#[test]
fn ranks_as_processes_and_threads_mixed() {
    together(&[("work", "0,3"), ("work", "1"), ("work", "2,4")], 5);
}

#[test]
fn a_process_that_dies_is_named_by_all_others() {
    for _ in 0..3 {
        together(&[("mourn", "0"), ("mourn", "1"), ("die", "2")], 3);
    }
}
