//! A fault leaves no descriptor, thread, child process or shared memory behind. One test, alone in
//! its process, whose footprint it compares.

mod common;

use std::time::Duration;

use common::footprint::Footprint;
use common::{config, on_ranks};
use stepccl::{Communicator, Config, Error, MemoryStore, ReduceOp};

fn impatient() -> Config {
    Config {
        timeout: Duration::from_millis(200),
        start_timeout: Duration::from_millis(200),
        ..config()
    }
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
    on_ranks(2, &impatient(), |comm| {
        // Rank 1 does not call, and stays until rank 0 has waited.
        if comm.rank() == 0 {
            let error = comm.all_reduce_in_place(&mut vec![1.0f32; 1 << 18], ReduceOp::Sum);
            assert!(matches!(error, Err(Error::Timeout { .. })), "{error:?}");
        } else {
            std::thread::sleep(Duration::from_millis(600));
        }
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

#[test]
fn a_fault_leaves_nothing_behind() {
    let faults: [(&str, fn()); 6] = [
        ("an abort", abort),
        ("a mismatch", mismatch),
        ("a timeout", timeout),
        ("a peer that left", early_leave),
        ("a start without the others", failed_start),
        ("a start with other sizes", refused_start),
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
    before.assert_restored("what was left on purpose");
    // A communicator that goes on holds shared memory.
    on_ranks(2, &config(), |_| assert_ne!(&Footprint::now(), before, "a communicator"));
    before.assert_restored("a communicator");
}
