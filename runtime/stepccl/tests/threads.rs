//! Threads that wait, start, end, abort and leave at the same time: nobody hangs, nobody is missed.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use common::{Random, config, on_ranks};
use stepccl::{
    Call, Collective, Communicator, Config, DType, Error, Keep, Memory, MemoryStore, Message,
    ReduceOp, Request, Work,
};

/// Far above what any of it takes, and far below every timeout.
const SOON: Duration = Duration::from_secs(10);

fn in_place(data: &mut [i32]) -> Call {
    let memory = Memory::Contiguous(data.as_mut_ptr().cast());
    Call {
        collective: Collective::AllReduce,
        dtype: DType::I32,
        op: ReduceOp::Sum,
        premul: 1.0,
        count: data.len(),
        input: memory.clone(),
        output: memory,
    }
}

/// Start an all_reduce of data that lives as long as the operation.
fn start(comm: &Communicator, count: usize) -> Work {
    let mut data = vec![1; count];
    let call = in_place(&mut data);
    // SAFETY:
    // - The heap memory of `data` stays where it is and is kept until the work has ended.
    unsafe { comm.start(call, None, Keep::new(data)) }.unwrap()
}

/// Start a receive that nobody answers.
fn start_recv(comm: &Communicator, bytes: usize, timeout: Option<Duration>) -> Work {
    let mut data = vec![0u8; bytes];
    let peer = 1 - comm.rank();
    let message = Message { peer, tag: 0, memory: data.as_mut_ptr(), bytes };
    // SAFETY:
    // - As in `start`.
    unsafe { comm.start(Request::Recv(message), timeout, Keep::new(data)) }.unwrap()
}

/// All ranks of a communicator, for one thread to use.
fn connect(ranks: u32, config: &Config) -> Vec<Communicator> {
    let store = MemoryStore::new();
    let store = &store;
    thread::scope(|scope| {
        let new = |rank| Communicator::new(store, "test.0", rank, ranks, config).unwrap();
        let threads: Vec<_> = (0..ranks).map(|rank| scope.spawn(move || new(rank))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

#[test]
fn destroying_a_communicator_ends_what_other_threads_wait_for() {
    for waiters in [0, 1, 3] {
        let mut ranks = connect(2, &config());
        let comm = ranks.swap_remove(0);
        let work = start_recv(&comm, 100, None);
        let threads: Vec<_> = (0..waiters)
            .map(|_| {
                let work = work.clone();
                thread::spawn(move || work.wait(None))
            })
            .collect();
        thread::sleep(Duration::from_millis(30));
        let started = Instant::now();
        drop(comm);
        for outcome in threads.into_iter().map(|t| t.join().unwrap()).chain([work.wait(None)]) {
            let error = outcome.unwrap_err();
            assert!(matches!(error, Error::Aborted { .. }), "{error}");
            assert!(error.to_string().contains("destroyed"), "{error}");
        }
        assert!(started.elapsed() < SOON / 5, "{:?}", started.elapsed());
    }
}

#[test]
fn abort_does_not_wait_for_the_end_of_a_large_operation() {
    let started = Instant::now();
    on_ranks(2, &config(), |comm| {
        // Some seconds each, if nobody ends it.
        let mut data = vec![1u8; 256 << 20];
        thread::scope(|scope| {
            if comm.rank() == 0 {
                scope.spawn(|| {
                    thread::sleep(Duration::from_millis(20));
                    comm.abort("enough");
                });
            }
            let error = loop {
                if let Err(error) = comm.all_reduce_in_place(&mut data, ReduceOp::Max) {
                    break error;
                }
            };
            match comm.rank() {
                0 => assert!(matches!(error, Error::Aborted { .. }), "{error}"),
                _ => assert!(matches!(error, Error::PeerLost { peer: 0, .. }), "{error}"),
            }
        });
    });
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
}

#[test]
fn abort_ends_everything_that_was_started_before() {
    on_ranks(2, &config(), |comm| {
        if comm.rank() == 1 {
            assert!(comm.recv(&mut [0u8], 0).is_err());
            return;
        }
        let works: Vec<_> = (0..20)
            .map(|i| if i % 2 == 0 { start(comm, 5) } else { start_recv(comm, 5, None) })
            .collect();
        comm.abort("all of you");
        for (i, work) in works.iter().enumerate() {
            let error = work.wait(Some(SOON)).unwrap_err();
            assert!(matches!(error, Error::Aborted { .. }), "operation {i}: {error}");
        }
        let error = start(comm, 5).wait(Some(SOON)).unwrap_err();
        assert!(matches!(error, Error::Broken { .. }), "{error}");
    });
}

#[test]
fn callbacks_may_start_the_next_operation() {
    const LINKS: usize = 300;
    fn link(comm: &Arc<Communicator>, left: usize, tell: mpsc::Sender<()>) {
        let work = start(comm, 1 + left % 3 * 1000);
        let next = Arc::clone(comm);
        work.on_done(move |outcome| {
            outcome.as_ref().unwrap();
            if left == 0 {
                tell.send(()).unwrap();
            } else {
                link(&next, left - 1, tell);
            }
        });
    }
    let ranks = connect(2, &config());
    let ends: Vec<_> = ranks
        .into_iter()
        .map(|comm| {
            let (tell, told) = mpsc::channel();
            let comm = Arc::new(comm);
            link(&comm, LINKS, tell);
            (comm, told)
        })
        .collect();
    for (_, told) in &ends {
        told.recv_timeout(SOON).expect("the chain ends");
    }
}

#[test]
fn a_callback_may_let_go_of_the_communicator() {
    for _ in 0..20 {
        let (tell, told) = mpsc::channel();
        for comm in connect(2, &config()) {
            let tell = tell.clone();
            let work = start(&comm, 100);
            work.on_done(move |outcome| {
                let outcome = outcome.clone();
                drop(comm);
                tell.send(outcome).unwrap();
            });
        }
        for _ in 0..2 {
            told.recv_timeout(SOON).expect("both ranks end").unwrap();
        }
    }
}

#[test]
fn a_callback_may_wait_for_an_operation_that_ended_with_its_own() {
    for _ in 0..50 {
        let comm = connect(1, &config()).remove(0);
        let (tell, told) = mpsc::channel();
        let first = start(&comm, 10_000);
        let second = start(&comm, 10);
        first.on_done(move |_| tell.send(second.wait(Some(SOON))).unwrap());
        first.wait(Some(SOON)).unwrap();
        told.recv_timeout(SOON).expect("the callback ends").unwrap();
    }
}

#[test]
fn a_panic_in_a_callback_or_in_what_is_kept_is_nobody_elses() {
    struct Angry(Vec<i32>);
    impl Drop for Angry {
        fn drop(&mut self) {
            assert!(self.0.is_empty(), "a made-up panic of a destructor");
        }
    }
    on_ranks(2, &config(), |comm| {
        for waits in [false, true] {
            let mut data = Angry(vec![1; 10]);
            let call = in_place(&mut data.0);
            // SAFETY:
            // - The heap memory of `data` stays where it is and is kept until the work has ended.
            let angry = unsafe { comm.start(call, None, Keep::new(data)) }.unwrap();
            angry.on_done(|_| panic!("a made-up panic of a callback"));
            let (tell, told) = mpsc::channel();
            angry.on_done(move |outcome| tell.send(outcome.clone()).unwrap());
            let next = start(comm, 10);
            if waits {
                next.wait(Some(SOON)).unwrap();
            }
            told.recv_timeout(SOON).expect("the next callback is called").unwrap();
            next.wait(Some(SOON)).unwrap();
        }
        // The worker lives.
        let (tell, told) = mpsc::channel();
        start(comm, 10).on_done(move |outcome| tell.send(outcome.clone()).unwrap());
        told.recv_timeout(SOON).expect("the worker ends it").unwrap();
        comm.barrier().unwrap();
    });
}

#[test]
fn a_wait_with_a_limit_names_the_operation_and_lets_it_go_on() {
    on_ranks(2, &config(), |comm| {
        if comm.rank() == 0 {
            let work = start_recv(comm, 40, None);
            let started = Instant::now();
            let error = work.wait(Some(Duration::from_millis(40))).unwrap_err();
            let took = started.elapsed();
            assert!(took >= Duration::from_millis(40) && took < SOON / 5, "{took:?}");
            assert!(matches!(error, Error::Timeout { running: true, .. }), "{error}");
            assert!(!error.is_fatal());
            let text = error.to_string();
            for part in ["rank 0 of 2: recv #0 (peer 1) of 40 bytes", "host engine", "goes on"] {
                assert!(text.contains(part), "{part:?} is missing: {text}");
            }
            comm.barrier().unwrap();
            // No limit is too long.
            work.wait(Some(Duration::MAX)).unwrap();
        } else {
            comm.barrier().unwrap();
            comm.send(&[1u8; 40], 0).unwrap();
        }
    });
}

#[test]
fn a_stuck_operation_times_out_while_others_go_on() {
    on_ranks(2, &config(), |comm| {
        let peer = 1 - comm.rank();
        if comm.rank() == 0 {
            let stuck = {
                let mut data = vec![0; 4];
                let call = in_place(&mut data);
                // SAFETY:
                // - The heap memory of `data` stays where it is and is kept until the work ends.
                unsafe { comm.start(call, Some(Duration::from_millis(200)), Keep::new(data)) }
                    .unwrap()
            };
            let started = Instant::now();
            // Never idle for long; the lane of the messages moves all the time.
            let mut data = vec![0u8; 1 << 20];
            let error = loop {
                if let Err(error) = comm.recv(&mut data, peer) {
                    break error;
                }
                assert!(started.elapsed() < SOON, "the time of a stuck operation is over");
            };
            assert!(matches!(error, Error::Broken { .. }), "{error}");
            let error = stuck.wait(None).unwrap_err();
            assert!(matches!(error, Error::Timeout { running: false, .. }), "{error}");
            assert!(error.to_string().contains("all_reduce #0"), "{error}");
        } else {
            let data = vec![1u8; 1 << 20];
            while comm.send(&data, peer).is_ok() {}
        }
    });
}

#[test]
fn handles_may_be_dropped_while_their_operations_run() {
    on_ranks(3, &config(), |comm| {
        for i in 0..300 {
            drop(start(comm, 1 + i * 7 % 2000));
        }
        comm.barrier().unwrap();
    });
}

#[test]
fn calls_of_one_thread_keep_their_order_however_they_are_made() {
    let seed = Random::new().next();
    on_ranks(3, &config(), |comm| {
        // The same choices on every rank, and other pauses.
        let mut choices = Random::from_seed(seed);
        let mut pauses = Random::from_seed(seed ^ u64::from(comm.rank() + 1));
        let mut works = Vec::new();
        for step in 0..600 {
            let count = 1 + choices.below(if step % 50 == 0 { 50_000 } else { 200 });
            if choices.below(3) == 0 {
                let mut data = vec![step; count];
                comm.all_reduce_in_place(&mut data, ReduceOp::Sum).unwrap();
                assert!(data.iter().all(|v| *v == 3 * step), "step {step}, seed {seed}");
            } else {
                works.push(start(comm, count));
            }
            match pauses.below(40) {
                0 => thread::sleep(Duration::from_micros(200)),
                1 => works.drain(..).for_each(|w| w.wait(Some(SOON)).unwrap()),
                2 => thread::yield_now(),
                _ => {}
            }
        }
        works.drain(..).for_each(|w| w.wait(Some(SOON)).unwrap());
    });
}

#[test]
fn many_threads_wait_with_and_without_limits() {
    let seed = Random::new().next();
    on_ranks(2, &config(), |comm| {
        let ended = AtomicUsize::new(0);
        let (ended, peer) = (&ended, 1 - comm.rank());
        thread::scope(|scope| {
            for lane in 0..4u64 {
                scope.spawn(move || {
                    let mut random = Random::from_seed(seed ^ lane ^ u64::from(comm.rank()) << 8);
                    for i in 0..100 {
                        // Each pair of threads sends and receives; messages of any two threads
                        // look alike, so their order does not matter.
                        let mut data = vec![i as u8; 500];
                        let message =
                            Message { peer, tag: 0, memory: data.as_mut_ptr(), bytes: 500 };
                        let request = if lane % 2 == 0 {
                            Request::Send(message)
                        } else {
                            Request::Recv(message)
                        };
                        // SAFETY:
                        // - The heap memory of `data` stays where it is and is kept until the work
                        //   has ended.
                        let work = unsafe { comm.start(request, None, Keep::new(data)) }.unwrap();
                        while random.below(3) > 0 && !work.is_done() {
                            let limit = Duration::from_micros(random.below(300) as u64 + 1);
                            let _ = work.wait(Some(limit));
                        }
                        work.wait(Some(SOON)).unwrap();
                        ended.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for _ in 0..100 {
                comm.all_reduce_in_place(&mut [1i64; 3], ReduceOp::Sum).unwrap();
            }
        });
        assert_eq!(ended.load(Ordering::Relaxed), 400);
    });
}

#[test]
fn one_thread_may_drive_several_communicators() {
    let store = MemoryStore::new();
    let store = &store;
    thread::scope(|scope| {
        for rank in 0..2u32 {
            scope.spawn(move || {
                let new = |name| Communicator::new(store, name, rank, 2, &config()).unwrap();
                let (a, b) = (new("a.0"), new("b.0"));
                for i in 0..200 {
                    let (one, two) = (start(&a, 1 + i % 100), start(&b, 1 + i % 70));
                    // The ranks wait in opposite orders.
                    let order = if rank == 0 { [one, two] } else { [two, one] };
                    order.iter().for_each(|w| w.wait(Some(SOON)).unwrap());
                    a.barrier().unwrap();
                }
            });
        }
    });
}

#[test]
fn counters_can_be_read_while_another_thread_waits() {
    on_ranks(2, &config(), |comm| {
        if comm.rank() == 1 {
            // The barrier ends only after the counters were read.
            comm.recv(&mut [0u8], 0).unwrap();
            comm.barrier().unwrap();
            return;
        }
        thread::scope(|scope| {
            scope.spawn(|| comm.barrier().unwrap());
            let started = Instant::now();
            while comm.stats().operations == 0 {
                assert!(started.elapsed() < SOON, "the barrier is called");
                thread::yield_now();
            }
            comm.send(&[0u8], 1).unwrap();
        });
    });
}
