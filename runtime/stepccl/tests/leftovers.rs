//! A fault leaves no descriptor, thread, child process, shared memory or name in `/dev/shm` and
//! `/tmp` behind. `faults` runs alone in a process, whose footprint it compares.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::Duration;

use common::footprint::{FOLDERS, Footprint, has_own_folders, is_alone, run_alone};
use common::{config, on_ranks};
use stepccl::{
    Communicator, Config, EngineChoice, Error, FileStore, Keep, MemoryStore, Message, ReduceOp,
    Request, Work,
};

/// Folder of the store, for the process that is killed.
const STORE: &str = "STEPCCL_TEST_LEFTOVERS_STORE";
const ENGINE: &str = "STEPCCL_TEST_LEFTOVERS_ENGINE";

/// Long enough to be in a wait.
const SHORT: Duration = Duration::from_millis(200);

/// A start that is given up soon.
fn impatient() -> Config {
    Config { start_timeout: SHORT, ..config() }
}

fn abort() {
    on_ranks(2, &config(), |comm| {
        if comm.rank() == 0 {
            comm.abort("a test");
        }
        assert!(comm.recv(&mut [0u8; 4], 1 - comm.rank()).is_err());
    });
}

fn mismatch() {
    on_ranks(3, &config(), |comm| {
        let error = if comm.rank() == 1 {
            comm.all_gather(&[1.0f32; 6], &mut [0.0; 18])
        } else {
            comm.all_reduce_in_place(&mut [1.0f32; 6], ReduceOp::Sum)
        };
        let error = error.and_then(|()| (0..100).try_for_each(|_| comm.barrier())).unwrap_err();
        assert!(matches!(error, Error::CallMismatch { .. }), "{error}");
    });
}

fn timeout() {
    // Rank 1 does not call, and stays until rank 0 has waited.
    let waited = Barrier::new(2);
    on_ranks(2, &Config { timeout: SHORT, ..config() }, |comm| {
        if comm.rank() == 0 {
            let error = comm.all_reduce_in_place(&mut vec![1.0f32; 1 << 18], ReduceOp::Sum);
            assert!(matches!(error, Err(Error::Timeout { .. })), "{error:?}");
        }
        waited.wait();
    });
}

fn early_leave() {
    on_ranks(2, &config(), |comm| {
        if comm.rank() == 0 {
            assert!(matches!(comm.barrier(), Err(Error::PeerLost { peer: 1, .. })));
        }
    });
}

fn failed_start() {
    let store = MemoryStore::new();
    assert!(Communicator::new(&store, "test.0", 0, 2, &impatient()).is_err());
}

fn refused_start() {
    let store = MemoryStore::new();
    std::thread::scope(|scope| {
        for world in [2, 3] {
            let store = &store;
            scope.spawn(move || {
                let rank = world - 2;
                assert!(Communicator::new(store, "test.0", rank, world, &impatient()).is_err());
            });
        }
    });
}

/// Short and long until the peer is gone.
fn work_until_lost(comm: &Communicator) -> Error {
    let mut data = vec![1.0f32; 300_000];
    let mut turn = || {
        comm.all_reduce_in_place(&mut data[..5], ReduceOp::Max)?;
        comm.all_reduce_in_place(&mut data, ReduceOp::Max)
    };
    loop {
        if let Err(error) = turn() {
            return error;
        }
    }
}

fn pair(folder: &Path, rank: u32, engine: EngineChoice) -> Communicator {
    let store = FileStore::open(folder).unwrap();
    Communicator::new(&store, "killed.0", rank, 2, &Config { engine, ..config() }).unwrap()
}

fn killed(engine: EngineChoice) {
    let folder = tempfile::tempdir().unwrap();
    // The path of this program may be hidden by a mount.
    let mut victim = Command::new("/proc/self/exe")
        .args(["--exact", "victim", "--test-threads=1"])
        .env(STORE, folder.path())
        .env(ENGINE, engine.name())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let comm = pair(folder.path(), 0, engine);
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            victim.kill().unwrap();
            victim.wait().unwrap();
        });
        work_until_lost(&comm)
    });
    assert!(matches!(error, Error::PeerLost { peer: 1, .. }), "{error}");
}

/// Rank 1 of [`killed`].
#[test]
fn victim() {
    let Some(folder) = std::env::var_os(STORE) else { return };
    let engine = std::env::var(ENGINE).unwrap();
    let engine = EngineChoice::ALL.into_iter().find(|e| e.name() == engine).unwrap();
    work_until_lost(&pair(Path::new(&folder), 1, engine));
}

/// Start to send or receive memory that the work keeps.
fn start(comm: &Communicator, bytes: usize) -> Result<Work, Error> {
    let mut data = vec![7u8; bytes];
    let message = Message { peer: 1 - comm.rank(), tag: 0, memory: data.as_mut_ptr(), bytes };
    let request = if comm.rank() == 0 { Request::Recv(message) } else { Request::Send(message) };
    // SAFETY:
    // - The work keeps `data`, whose bytes do not move with it and are not used otherwise.
    unsafe { comm.start(request, None, Keep::new(data)) }
}

/// Both ranks start work and forget it; it ends all the same, or with the communicator.
fn dropped_work(engine: EngineChoice) {
    on_ranks(2, &Config { engine, ..config() }, |comm| {
        for bytes in [8, 1 << 20] {
            drop(start(comm, bytes).unwrap());
        }
        // Messages of a pair go in order: what was dropped has ended then.
        start(comm, 8).unwrap().wait(None).unwrap();
        comm.barrier().unwrap();
        // The other may have left already, with its own under way.
        drop(start(comm, 1 << 20));
    });
}

/// Work that was started and dropped, and cannot end: the peer does nothing, and leaves.
fn endless_work(engine: EngineChoice) {
    on_ranks(2, &Config { engine, ..config() }, |comm| {
        comm.barrier().unwrap();
        if comm.rank() == 0 {
            drop(start(comm, 1 << 20).unwrap());
        }
    });
}

#[test]
fn a_fault_leaves_nothing_behind() {
    run_alone("faults");
}

#[test]
fn faults() {
    if !is_alone() {
        return;
    }
    let faults: [(&str, fn()); 12] = [
        ("an abort", abort),
        ("a mismatch", mismatch),
        ("a timeout", timeout),
        ("a peer that left", early_leave),
        ("a start without the others", failed_start),
        ("a start with other sizes", refused_start),
        ("a killed rank", || killed(EngineChoice::Host)),
        ("a killed rank over TCP", || killed(EngineChoice::Tcp)),
        ("work that nobody waited for", || dropped_work(EngineChoice::Host)),
        ("work that nobody waited for over TCP", || dropped_work(EngineChoice::Tcp)),
        ("work without an end", || endless_work(EngineChoice::Host)),
        ("work without an end over TCP", || endless_work(EngineChoice::Tcp)),
    ];
    // What is made once a process, such as its flight record, is there before.
    on_ranks(2, &config(), |comm| comm.barrier().unwrap());
    let before = Footprint::now();
    for (name, fault) in faults {
        fault();
        before.assert_restored(name);
    }
    notices_what_is_left(&before);
}

/// The comparison is of use only if it sees each kind.
fn notices_what_is_left(before: &Footprint) {
    let descriptor = std::fs::File::open("/dev/null").unwrap();
    assert_ne!(&Footprint::now(), before, "an open descriptor");
    drop(descriptor);
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || stopped.recv());
    assert_ne!(&Footprint::now(), before, "a thread");
    drop(stop);
    assert!(thread.join().unwrap().is_err());
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    assert_ne!(&Footprint::now(), before, "a child");
    child.kill().unwrap();
    child.wait().unwrap();
    if has_own_folders() {
        for folder in FOLDERS {
            let path = Path::new(folder).join("left");
            std::fs::write(&path, b"").unwrap();
            assert_ne!(&Footprint::now(), before, "a name in {folder}");
            std::fs::remove_file(&path).unwrap();
        }
    }
    before.assert_restored("what was left on purpose");
    // A communicator that goes on holds shared memory.
    on_ranks(2, &config(), |_| assert_ne!(&Footprint::now(), before, "a communicator"));
    before.assert_restored("a communicator");
}
