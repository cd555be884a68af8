//! Ranks that call different collectives: every rank says who called what, and nobody hangs.

mod common;

use std::time::{Duration, Instant};

use common::{config, on_ranks};
use stepccl::{Communicator, Error, Outcome, ReduceOp};

type Calls = fn(&Communicator) -> Outcome;

/// Elements of a message that is posted, and of one that goes through a program.
const SHORT: usize = 6;
const LONG: usize = 1 << 18;

/// Call a hundred barriers after what differs: a rank that does not wait for others in a
/// collective finds out in a later one.
fn differ(ranks: u32, odd: u32, common: Calls, other: Calls, texts: [&str; 2]) {
    let started = Instant::now();
    let errors = on_ranks(ranks, &config(), |comm| {
        for _ in 0..3 {
            comm.barrier().unwrap();
        }
        let call = if comm.rank() == odd { other } else { common };
        call(comm).and_then(|()| (0..100).try_for_each(|_| comm.barrier())).unwrap_err()
    });
    for (rank, error) in (0..).zip(errors) {
        let text = error.to_string();
        assert!(matches!(error, Error::CallMismatch { number: 3, .. }), "rank {rank}: {text}");
        assert!(text.contains(&format!("rank {rank} of {ranks}")), "{text}");
        assert!(text.contains("collective #3"), "{text}");
        for text_of_call in texts {
            assert!(text.contains(text_of_call), "{text_of_call} is not in: {text}");
        }
        assert!(text.contains(&format!("rank {odd} called {}", texts[1])), "{text}");
    }
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

fn reduce(comm: &Communicator, count: usize, op: ReduceOp) -> Outcome {
    comm.all_reduce_in_place(&mut vec![1.0f32; count], op)
}

fn gather(comm: &Communicator, count: usize) -> Outcome {
    comm.all_gather(&vec![1.0f32; count], &mut vec![0.0f32; count * comm.ranks() as usize])
}

#[test]
fn another_collective() {
    for ranks in [2, 3, 5] {
        differ(
            ranks,
            ranks - 1,
            |c| reduce(c, SHORT, ReduceOp::Sum),
            |c| gather(c, SHORT),
            ["all_reduce of 6 float (sum)", "all_gather of 6 float"],
        );
        differ(
            ranks,
            0,
            |c| reduce(c, LONG, ReduceOp::Sum),
            |c| gather(c, LONG),
            ["all_reduce of 262144 float (sum)", "all_gather of 262144 float"],
        );
    }
}

#[test]
fn another_count() {
    for (ranks, odd) in [(2, 0), (2, 1), (4, 2)] {
        differ(
            ranks,
            odd,
            |c| reduce(c, SHORT, ReduceOp::Sum),
            |c| reduce(c, SHORT + 1, ReduceOp::Sum),
            ["6 float", "all_reduce of 7 float (sum)"],
        );
        // One is posted, the other is not.
        differ(
            ranks,
            odd,
            |c| reduce(c, LONG, ReduceOp::Sum),
            |c| reduce(c, SHORT, ReduceOp::Sum),
            ["262144 float", "all_reduce of 6 float (sum)"],
        );
        differ(
            ranks,
            odd,
            |c| reduce(c, LONG, ReduceOp::Sum),
            |c| reduce(c, 2 * LONG, ReduceOp::Sum),
            ["262144 float", "all_reduce of 524288 float (sum)"],
        );
    }
}

#[test]
fn another_type_of_the_same_size() {
    differ(
        3,
        1,
        |c| reduce(c, LONG, ReduceOp::Sum),
        |c| c.all_reduce_in_place(&mut vec![1i32; LONG], ReduceOp::Sum),
        ["float", "all_reduce of 262144 int32 (sum)"],
    );
}

#[test]
fn another_operation() {
    differ(
        2,
        1,
        |c| reduce(c, SHORT, ReduceOp::Sum),
        |c| reduce(c, SHORT, ReduceOp::Max),
        ["all_reduce of 6 float (sum)", "all_reduce of 6 float (max)"],
    );
}

#[test]
fn another_root() {
    differ(
        3,
        2,
        |c| c.broadcast(&mut [1i64; SHORT], 0),
        |c| c.broadcast(&mut [1i64; SHORT], 1),
        ["broadcast of 6 int64 with root 0", "broadcast of 6 int64 with root 1"],
    );
    differ(
        3,
        0,
        |c| c.broadcast(&mut vec![1i64; LONG], 0),
        |c| c.broadcast(&mut vec![1i64; LONG], 1),
        ["broadcast of 262144 int64 with root 0", "broadcast of 262144 int64 with root 1"],
    );
}

#[test]
fn another_order() {
    differ(
        2,
        1,
        |c| reduce(c, SHORT, ReduceOp::Sum).and_then(|()| gather(c, LONG)),
        |c| gather(c, LONG).and_then(|()| reduce(c, SHORT, ReduceOp::Sum)),
        ["all_reduce of 6 float (sum)", "all_gather of 262144 float"],
    );
}

#[test]
fn ranks_that_agree_are_left_alone_however_far_one_is_ahead() {
    on_ranks(3, &config(), |comm| {
        for i in 0..300u64 {
            let mut data = vec![comm.rank() as u8; if i % 7 == 0 { 100_000 } else { 10 }];
            comm.broadcast(&mut data, 0).unwrap();
            assert!(data.iter().all(|v| *v == 0));
            if comm.rank() == 2 && i % 50 == 0 {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    });
}
