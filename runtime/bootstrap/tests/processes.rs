//! Ranks as processes: this test binary started again.

mod util;

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use stepccl_bootstrap::{
    BootstrapError, FileStore, Store, StoreError, TcpStore, TcpStoreLimits, TcpStoreServer, join,
};
use util::{TIMEOUT, config, soon};

/// Ends the process in the middle of `join`: when it sees or writes the table of all ranks, so
/// after it has published itself and before it has any link.
#[derive(Debug)]
struct Dying(FileStore);

impl Store for Dying {
    fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.0.set(key, value)?;
        if key.ends_with("/table") {
            std::process::abort();
        }
        Ok(())
    }

    fn get(&self, key: &str, deadline: Instant) -> Result<Vec<u8>, StoreError> {
        self.0.get(key, deadline)
    }

    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let value = self.0.try_get(key)?;
        if key.ends_with("/table") && value.is_some() {
            std::process::abort();
        }
        Ok(value)
    }

    fn add(&self, key: &str, n: i64) -> Result<i64, StoreError> {
        self.0.add(key, n)
    }
}

fn start(store: &str, rank: u32, ranks: u32) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_rank", "--ignored", "--nocapture"])
        .env("STEPCCL_TEST_STORE", store)
        .env("STEPCCL_TEST_RANK", format!("{rank} {ranks}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn finish(child: Child) -> Output {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{:?}\n{}\n{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    output
}

#[test]
#[ignore = "one rank; the other tests start it as a process with its part in the environment"]
fn a_rank() {
    let store = std::env::var("STEPCCL_TEST_STORE").expect("started by another test");
    let numbers = std::env::var("STEPCCL_TEST_RANK").expect("started by another test");
    let (rank, ranks) = numbers.split_once(' ').unwrap();
    let (rank, ranks): (u32, u32) = (rank.parse().unwrap(), ranks.parse().unwrap());
    let store: Box<dyn Store> = match store.split_once(' ').unwrap() {
        ("file", path) => Box::new(FileStore::open(Path::new(path)).unwrap()),
        ("dying", path) => Box::new(Dying(FileStore::open(Path::new(path)).unwrap())),
        ("tcp", address) => {
            Box::new(TcpStore::connect(address, config("w", 0, 1).secret, TIMEOUT).unwrap())
        }
        other => panic!("{other:?}"),
    };
    let begin = Instant::now();
    let mut mesh = join(&store, config("w", rank, ranks)).unwrap();
    println!("joined in {:?}", begin.elapsed());
    let pids = mesh.exchange(&std::process::id().to_le_bytes(), soon()).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    write!(file, "{rank}").unwrap();
    let files = mesh.exchange_fd(file.as_fd(), soon()).unwrap();
    for peer in (0..ranks).filter(|&peer| peer != rank) {
        let link = mesh.links[peer as usize].as_ref().unwrap();
        assert_eq!(pids[peer as usize].as_deref().unwrap(), link.pid.to_le_bytes());
        let mut text = [0; 8];
        let file = std::fs::File::from(files[peer as usize].as_ref().unwrap().try_clone().unwrap());
        let count = file.read_at(&mut text, 0).unwrap();
        assert_eq!(text[..count], *peer.to_string().as_bytes());
    }
    // Nobody ends before all have checked.
    mesh.exchange(&[], soon()).unwrap();
}

fn meet(store: &str, ranks: u32) {
    let children: Vec<_> = (0..ranks).map(|rank| start(store, rank, ranks)).collect();
    for child in children {
        let output = finish(child);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("joined in"), "the rank did not run: {text}");
        if ranks == 2 {
            print!("{text}");
        }
    }
}

#[test]
fn processes_meet_over_files() {
    for ranks in [2, 5] {
        let directory = tempfile::tempdir().unwrap();
        meet(&format!("file {}", directory.path().display()), ranks);
    }
}

#[test]
fn processes_meet_over_tcp() {
    let secret = config("w", 0, 1).secret;
    let server = TcpStoreServer::bind("127.0.0.1:0", secret, TcpStoreLimits::default()).unwrap();
    meet(&format!("tcp {}", server.address()), 4);
}

#[test]
fn a_process_that_dies_before_it_links_is_named() {
    for (dying, living) in [(1, 0), (0, 1)] {
        let directory = tempfile::tempdir().unwrap();
        let child = start(&format!("dying {}", directory.path().display()), dying, 2);
        let begin = Instant::now();
        let store = FileStore::open(directory.path()).unwrap();
        let error = join(&store, config("w", living, 2)).unwrap_err();
        match &error {
            BootstrapError::PeerLost { peer, pid, .. } => {
                assert_eq!((*peer, *pid), (dying, child.id()));
            }
            other => panic!("{other:?}"),
        }
        assert!(begin.elapsed() < TIMEOUT - Duration::from_secs(5), "not at the deadline");
        assert!(!child.wait_with_output().unwrap().status.success());
    }
}

#[test]
fn a_killed_process_closes_its_links() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = start(&format!("file {}", directory.path().display()), 1, 2);
    let store = FileStore::open(directory.path()).unwrap();
    let mut mesh = join(&store, config("w", 0, 2)).unwrap();
    // It waits for the first exchange.
    child.kill().unwrap();
    child.wait().unwrap();
    mesh.exchange(b"x", soon()).map(drop).or_else(|error| lost(&error)).unwrap();
    let error = mesh.exchange(b"x", soon()).unwrap_err();
    assert!(
        matches!(error, BootstrapError::PeerLost { peer: 1, .. } | BootstrapError::Broken { .. }),
        "{error:?}"
    );
}

/// The first exchange may pass, because the process had sent its part before it was killed.
fn lost(error: &BootstrapError) -> Result<(), String> {
    match error {
        BootstrapError::PeerLost { peer: 1, .. } => Ok(()),
        other => Err(other.to_string()),
    }
}
