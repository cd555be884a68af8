//! What goes wrong must be an error that says what, soon, on every rank; and never a hang.

mod common;

use std::sync::Barrier;
use std::time::{Duration, Instant};

use common::{config, on_ranks};
use stepccl::{
    Call, Collective, Communicator, Config, DType, EngineChoice, Error, Keep, LossReason, Memory,
    Message, ReduceOp, Request,
};

fn call(collective: Collective, count: usize, input: &mut [f32], output: &mut [f32]) -> Call {
    Call {
        collective,
        dtype: DType::F32,
        op: ReduceOp::Sum,
        premul: 1.0,
        count,
        input: Memory::Contiguous(input.as_mut_ptr().cast()),
        output: Memory::Contiguous(output.as_mut_ptr().cast()),
    }
}

fn send(data: &[u8], peer: u32, tag: i32) -> Request {
    let memory = data.as_ptr().cast_mut();
    Request::Send(Message { peer, tag, memory, bytes: data.len() })
}

fn recv(data: &mut [u8], peer: u32) -> Request {
    Request::Recv(Message { peer, tag: 0, memory: data.as_mut_ptr(), bytes: data.len() })
}

#[test]
fn a_missing_rank_is_a_timeout_that_names_it() {
    let limit = Duration::from_millis(200);
    let config = Config { timeout: limit, ..config() };
    let started = Instant::now();
    on_ranks(2, &config, |comm| {
        if comm.rank() == 1 {
            // Late, and without a call.
            std::thread::sleep(limit * 4);
            return;
        }
        let error = comm.all_reduce_in_place(&mut [1.0f32; 100], ReduceOp::Sum).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Timeout { .. }), "{text}");
        for part in ["rank 0 of 2", "all_reduce #0", "400 bytes", "host engine", "rank 1"] {
            assert!(text.contains(part), "{part:?} is missing: {text}");
        }
        let next = comm.barrier().unwrap_err();
        assert!(matches!(&next, Error::Broken { first, .. } if *first == text), "{next}");
    });
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_failed_rank_fails_the_others_and_is_blamed() {
    let config = Config { timeout: Duration::from_secs(30), ..config() };
    let started = Instant::now();
    on_ranks(3, &config, |comm| match comm.rank() {
        // Rank 2 never calls; rank 0 has less patience than rank 1.
        0 => {
            let mut data = [0.0f32; 8];
            let mut call = call(Collective::AllReduce, 8, &mut data, &mut [0.0; 8]);
            call.output = call.input.clone();
            // SAFETY:
            // - `data` lives until `run` returns.
            let error = unsafe { comm.run(call, Some(Duration::from_millis(200))) }.unwrap_err();
            assert!(matches!(error, Error::Timeout { .. }), "{error}");
            std::thread::sleep(Duration::from_millis(600));
        }
        1 => {
            let error = comm.all_reduce_in_place(&mut [0.0f32; 8], ReduceOp::Sum).unwrap_err();
            let Error::PeerLost { peer: 0, reason: LossReason::Failed { culprit: 2 }, .. } = error
            else {
                panic!("{error}")
            };
        }
        _ => std::thread::sleep(Duration::from_millis(900)),
    });
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_closed_communicator_is_an_error_for_who_waits_for_it() {
    on_ranks(2, &config(), |comm| {
        if comm.rank() == 0 {
            let started = Instant::now();
            let error = comm.barrier().unwrap_err();
            let Error::PeerLost { peer: 1, reason: LossReason::Closed, .. } = error else {
                panic!("{error}")
            };
            assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
        }
    });
}

#[test]
fn leaving_early_does_not_hurt_who_has_all_it_needs() {
    for _ in 0..20 {
        on_ranks(4, &config(), |comm| {
            let mut data = vec![comm.rank() as i32; 3000];
            comm.broadcast(&mut data, 2).unwrap();
            assert!(data.iter().all(|v| *v == 2));
        });
    }
}

#[test]
fn abort_ends_a_wait_from_another_thread_and_reaches_the_peers() {
    let started = Instant::now();
    on_ranks(2, &config(), |comm| {
        if comm.rank() == 0 {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(100));
                    comm.abort("the user pressed a key");
                });
                let error = comm.barrier().unwrap_err();
                assert!(error.to_string().contains("the user pressed a key"), "{error}");
            });
            assert!(comm.barrier().is_err());
        } else {
            // In a wait of its own when rank 0 aborts.
            let error = comm.recv(&mut [0u8; 4], 0).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, Error::PeerLost { peer: 0, .. }), "{text}");
            assert!(text.contains("it was aborted: the user pressed a key"), "{text}");
        }
    });
    assert!(started.elapsed() < Duration::from_secs(5));
}

/// Who waits for a rank that failed because of another hears of that other.
#[test]
fn the_rank_that_caused_it_is_named_and_not_who_failed_because_of_it() {
    for engine in [EngineChoice::Host, EngineChoice::Tcp] {
        // Rank 2 aborts, then rank 1 waits for it, then rank 0 for rank 1.
        let (aborted, failed) = (Barrier::new(2), Barrier::new(2));
        on_ranks(3, &Config { engine, ..config() }, |comm| {
            let wait_for = |rank| comm.recv(&mut [0u8; 4], rank).unwrap_err();
            match comm.rank() {
                2 => {
                    comm.abort("the user pressed a key");
                    aborted.wait();
                }
                1 => {
                    aborted.wait();
                    wait_for(2);
                    failed.wait();
                }
                _ => {
                    failed.wait();
                    let error = wait_for(1);
                    let Error::PeerLost { peer: 2, reason: LossReason::Aborted { reason }, .. } =
                        &error
                    else {
                        panic!("{error}")
                    };
                    assert_eq!(reason, "the user pressed a key");
                }
            }
        });
    }
}

#[test]
fn a_message_of_another_size_or_tag_is_an_error_with_both() {
    for (bytes, tag) in [(12, 0), (16, 5)] {
        on_ranks(2, &config(), |comm| {
            if comm.rank() == 0 {
                let data = [7u8; 16];
                // SAFETY:
                // - `data` lives until the call returns.
                unsafe { comm.run(send(&data[..bytes], 1, tag), None) }.unwrap();
                // Stay until the receiver has seen it.
                let _ = comm.recv(&mut [0u8; 1], 1);
            } else {
                let error = comm.recv(&mut [0u8; 16], 0).unwrap_err();
                let text = error.to_string();
                assert!(matches!(error, Error::MessageMismatch { peer: 0, .. }), "{text}");
                assert!(text.contains(&format!("{bytes} bytes with tag {tag}")), "{text}");
                assert!(text.contains("16 bytes with tag 0"), "{text}");
            }
        });
    }
}

#[test]
fn a_long_message_of_another_size_moves_nothing() {
    const LONG: usize = 3 << 20;
    let config = Config { single_copy: Some(true), ..config() };
    on_ranks(2, &config, |comm| {
        if comm.rank() == 0 {
            // It is read where it lies, so it cannot end well before somebody has read it.
            let error = comm.send(&vec![7u8; LONG], 1).unwrap_err().to_string();
            assert!(error.contains("rank 1"), "{error}");
        } else {
            let mut data = vec![1u8; LONG - 1];
            let error = comm.recv(&mut data, 0).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, Error::MessageMismatch { peer: 0, .. }), "{text}");
            assert!(text.contains(&LONG.to_string()), "{text}");
            assert!(data.iter().all(|byte| *byte == 1));
        }
    });
}

#[test]
fn bad_arguments_are_named_and_break_nothing() {
    on_ranks(2, &config(), |comm| {
        let mut data = vec![1.0f32; 64];
        let base = data.as_mut_ptr().cast::<u8>();
        let good = |collective, count| Call {
            collective,
            dtype: DType::F32,
            op: ReduceOp::Sum,
            premul: 1.0,
            count,
            input: Memory::Contiguous(base),
            output: Memory::Contiguous(base),
        };
        let null = Memory::Contiguous(std::ptr::null_mut());
        let bad = [
            ("root", good(Collective::Broadcast { root: 2 }, 1)),
            ("count", good(Collective::AllReduce, usize::MAX)),
            ("input", Call { input: Memory::None, ..good(Collective::AllReduce, 8) }),
            ("output", Call { output: null, ..good(Collective::AllReduce, 8) }),
            ("op", Call { op: ReduceOp::BitAnd, ..good(Collective::AllReduce, 8) }),
            ("op", Call { dtype: DType::C64, op: ReduceOp::Max, ..good(Collective::AllReduce, 8) }),
            (
                "op",
                Call { dtype: DType::Bool, op: ReduceOp::Avg, ..good(Collective::AllReduce, 8) },
            ),
            (
                "premul",
                Call {
                    dtype: DType::I32,
                    op: ReduceOp::PremulSum,
                    premul: 0.5,
                    ..good(Collective::AllReduce, 8)
                },
            ),
            (
                "output",
                Call {
                    output: Memory::Contiguous(base.wrapping_add(4)),
                    ..good(Collective::AllReduce, 8)
                },
            ),
            ("output", good(Collective::AllToAll, 8)),
            (
                "input",
                Call { input: Memory::Blocks([base; 3].into()), ..good(Collective::AllToAll, 8) },
            ),
        ];
        for (name, call) in bad {
            // SAFETY:
            // - Every call is refused before memory is touched.
            let error = unsafe { comm.run(call, None) }.unwrap_err();
            assert!(
                matches!(&error, Error::InvalidArgument { name: n, .. } if *n == name),
                "{error}"
            );
        }
        for peer in [comm.rank(), 2, u32::MAX] {
            let error = comm.send(&data, peer).unwrap_err();
            assert!(matches!(error, Error::InvalidArgument { name: "peer", .. }), "{error}");
        }
        let error = comm.all_gather(&data[..5], &mut [0.0; 11]).unwrap_err();
        assert!(error.to_string().contains("11 elements"), "{error}");
        assert!(!error.is_fatal());
        comm.all_reduce_in_place(&mut data, ReduceOp::Sum).unwrap();
        assert!(data.iter().all(|v| *v == 2.0));
    });
}

#[test]
fn ranks_with_other_settings_are_refused_on_both_sides() {
    let store = stepccl::MemoryStore::new();
    let store = &store;
    std::thread::scope(|scope| {
        for rank in 0..2u32 {
            scope.spawn(move || {
                let config = Config { pipeline_depth: Some(rank + 1), ..config() };
                let error = Communicator::new(store, "c.0", rank, 2, &config).unwrap_err();
                let text = error.to_string();
                assert!(matches!(error, Error::Disagreement { .. }), "{text}");
                assert!(text.contains("pipeline_depth"), "{text}");
            });
        }
    });
}

#[test]
fn started_operations_run_in_order_beside_the_caller_and_in_any_mix() {
    on_ranks(3, &config(), |comm| {
        let n = comm.ranks() as f32;
        let mut buffers: Vec<Vec<f32>> = (0..50).map(|i| vec![i as f32; 100 + 37 * i]).collect();
        let works: Vec<_> = buffers
            .iter_mut()
            .map(|b| {
                let mut call = call(Collective::AllReduce, b.len(), b, &mut []);
                call.output = call.input.clone();
                // SAFETY:
                // - The buffers live, and are not touched, until all works are waited for below.
                unsafe { comm.start(call, None, Keep::default()) }.unwrap()
            })
            .collect();
        // A call that waits, behind them in the queue.
        let mut data = [1.0f32; 3];
        comm.all_reduce_in_place(&mut data, ReduceOp::Sum).unwrap();
        assert_eq!(data, [n; 3]);
        assert!(works.iter().all(stepccl::Work::is_done), "a later operation ended first");
        for work in works.iter().rev() {
            work.wait(None).unwrap();
        }
        for (i, b) in buffers.iter().enumerate() {
            assert!(b.iter().all(|v| *v == i as f32 * n), "operation {i}");
        }
    });
}

#[test]
fn nobody_needs_to_wait_for_a_started_operation_to_end() {
    on_ranks(2, &config(), |comm| {
        let (tell, told) = std::sync::mpsc::channel();
        let mut data = vec![1.0f32; 1 << 18];
        let mut call = call(Collective::AllReduce, data.len(), &mut data, &mut []);
        call.output = call.input.clone();
        // SAFETY:
        // - `data` lives, and is not touched, until the callback has told the end.
        let work = unsafe { comm.start(call, None, Keep::default()) }.unwrap();
        work.on_done(move |outcome| tell.send(outcome.clone()).unwrap());
        told.recv_timeout(Duration::from_secs(20)).expect("the worker ends it").unwrap();
        assert!(data.iter().all(|v| *v == 2.0));
        comm.barrier().unwrap();
    });
}

#[test]
fn sends_and_receives_both_ways_at_once_do_not_block_one_another() {
    on_ranks(2, &config(), |comm| {
        let peer = 1 - comm.rank();
        // Far more than the slots of a pair hold.
        let out = vec![comm.rank() as u8 + 1; 8 << 20];
        let mut got = vec![0u8; 8 << 20];
        // SAFETY:
        // - Both buffers live, and are not touched, until both works are waited for.
        let (send, recv) = unsafe {
            (
                comm.start(send(&out, peer, 0), None, Keep::default()).unwrap(),
                comm.start(recv(&mut got, peer), None, Keep::default()).unwrap(),
            )
        };
        recv.wait(None).unwrap();
        send.wait(None).unwrap();
        assert!(got.iter().all(|v| *v == peer as u8 + 1));
    });
}

#[test]
fn several_threads_of_a_rank_may_call_at_once() {
    on_ranks(2, &config(), |comm| {
        let peer = 1 - comm.rank();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for i in 0..200u32 {
                    comm.send(&i.to_ne_bytes().repeat(100), peer).unwrap();
                }
            });
            scope.spawn(move || {
                for i in 0..200u32 {
                    let mut got = [0u8; 400];
                    comm.recv(&mut got, peer).unwrap();
                    assert_eq!(got[..4], i.to_ne_bytes());
                }
            });
            for _ in 0..200 {
                let mut data = [1i64; 10];
                comm.all_reduce_in_place(&mut data, ReduceOp::Sum).unwrap();
                assert_eq!(data, [2; 10]);
            }
        });
    });
}

#[test]
fn dropping_a_communicator_with_work_under_way_ends_it_with_an_error() {
    on_ranks(2, &config(), |comm| {
        if comm.rank() == 1 {
            std::thread::sleep(Duration::from_millis(300));
            return;
        }
        let store = stepccl::MemoryStore::new();
        let alone = Communicator::new(&store, "alone.0", 0, 1, &config()).unwrap();
        drop(alone);
        let mut data = vec![0u8; 100];
        // SAFETY:
        // - `data` lives until the work has ended, which is checked below.
        let work = unsafe { comm.start(recv(&mut data, 1), None, Keep::default()).unwrap() };
        assert!(work.wait(Some(Duration::from_millis(50))).is_err());
        assert!(!work.is_done(), "a shorter wait must not end the operation");
        comm.abort("enough");
        assert!(work.wait(None).unwrap_err().to_string().contains("enough"));
    });
}
