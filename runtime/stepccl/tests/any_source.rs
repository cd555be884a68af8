//! Receives from any source: fair, in order, and alive as long as somebody can send.

mod common;

use std::time::Duration;

use common::{Random, config, on_ranks};
use stepccl::{AnyMessage, Error, Keep, Message, Request, Work};

/// Start a receive into memory that lives as long as it.
fn start(comm: &stepccl::Communicator, peer: Option<u32>, bytes: usize) -> Work {
    let mut data = vec![0u8; bytes];
    let memory = data.as_mut_ptr();
    let request = match peer {
        Some(peer) => Request::Recv(Message { peer, tag: 0, memory, bytes }),
        None => Request::RecvAny(AnyMessage { tag: 0, memory, bytes }),
    };
    // SAFETY:
    // - The heap memory of `data` stays where it is and is kept until the work has ended.
    unsafe { comm.start(request, None, Keep::new(data)) }.unwrap()
}

#[test]
fn every_message_comes_once_and_whole_from_the_rank_that_is_named() {
    for ranks in 2..=6u32 {
        let seed = Random::new().next();
        on_ranks(ranks, &config(), |comm| {
            let me = comm.rank();
            let lengths = |from: u32| {
                let mut random = Random::from_seed(seed ^ u64::from(from) << 32);
                move || [0, 1, 8, 500, 60_000][random.below(5)]
            };
            // The length is agreed on for each message, with whoever sends it.
            if me > 0 {
                let mut length = lengths(me);
                for i in 0..60i64 {
                    let count = length();
                    comm.send(&[i64::from(me), i, i64::from(count)], 0).unwrap();
                    let data: Vec<i64> = (0..i64::from(count)).map(|v| v ^ i << 40).collect();
                    comm.send(&data, 0).unwrap();
                }
                return;
            }
            let mut next = vec![0i64; ranks as usize];
            for _ in 0..60 * (ranks - 1) {
                let mut head = [i64::MAX; 3];
                let source = comm.recv_any(&mut head).unwrap();
                assert_eq!(head[0], i64::from(source), "seed {seed}");
                assert_eq!(head[1], next[source as usize], "in order, seed {seed}");
                next[source as usize] += 1;
                let mut data = vec![i64::MAX; head[2] as usize];
                comm.recv(&mut data, source).unwrap();
                let expected: Vec<i64> = (0..head[2]).map(|v| v ^ head[1] << 40).collect();
                assert_eq!(data, expected, "seed {seed}");
            }
            assert!(next[1..].iter().all(|n| *n == 60));
        });
    }
}

#[test]
fn no_rank_is_forgotten_while_others_send_all_the_time() {
    on_ranks(4, &config(), |comm| {
        if comm.rank() > 0 {
            // As much as the slots hold and more, so that something is always there.
            (0..200i32).for_each(|i| comm.send(&[i], 0).unwrap());
            comm.barrier().unwrap();
            return;
        }
        // All have filled their slots by then.
        std::thread::sleep(Duration::from_millis(100));
        let mut counts = [0u32; 4];
        for _ in 0..9 {
            counts[comm.recv_any(&mut [0i32]).unwrap() as usize] += 1;
        }
        assert_eq!(counts, [0, 3, 3, 3]);
        for _ in 9..600 {
            comm.recv_any(&mut [0i32]).unwrap();
        }
        comm.barrier().unwrap();
    });
}

#[test]
fn the_receive_that_was_posted_first_gets_the_message() {
    on_ranks(3, &config(), |comm| {
        if comm.rank() > 0 {
            comm.barrier().unwrap();
            if comm.rank() == 1 {
                comm.send(&[10u8; 10], 0).unwrap();
                comm.send(&[11u8; 11], 0).unwrap();
                comm.send(&[12u8; 12], 0).unwrap();
            }
            comm.barrier().unwrap();
            if comm.rank() == 2 {
                comm.send(&[13u8; 13], 0).unwrap();
            }
            return;
        }
        let first = start(comm, Some(1), 10);
        let any = start(comm, None, 11);
        let later = start(comm, Some(1), 12);
        let last = start(comm, None, 13);
        comm.barrier().unwrap();
        for work in [&later, &any, &first] {
            work.wait(None).unwrap();
        }
        assert_eq!((first.source(), any.source(), last.source()), (None, Some(1), None));
        comm.barrier().unwrap();
        last.wait(None).unwrap();
        assert_eq!(last.source(), Some(2));
    });
}

#[test]
fn a_rank_that_left_is_no_harm_while_another_can_send() {
    on_ranks(3, &config(), |comm| match comm.rank() {
        // It leaves at once.
        1 => {}
        2 => {
            std::thread::sleep(Duration::from_millis(300));
            comm.send(&[5u8], 0).unwrap();
        }
        _ => {
            let mut data = [0u8];
            assert_eq!(comm.recv_any(&mut data).unwrap(), 2);
            assert_eq!(data, [5]);
            let error = comm.recv_any(&mut data).unwrap_err();
            assert!(matches!(error, Error::PeerLost { .. }), "{error}");
        }
    });
}

#[test]
fn one_rank_alone_cannot_receive_from_any() {
    on_ranks(1, &config(), |comm| {
        let error = comm.recv_any(&mut [0u8]).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    });
}
