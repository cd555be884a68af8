//! Communicators made of parts of others, without a store.

mod common;

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use common::{Random, config, on_ranks};
use stepccl::{Call, Collective, Communicator, Config, DType, Error, Keep, Memory, ReduceOp};

/// Whether `comm` has the ranks `expected` of the world, in this order, and works.
fn check(comm: &Communicator, world_rank: u32, expected: &[u32]) {
    assert_eq!(comm.ranks() as usize, expected.len(), "{}", comm.name());
    assert_eq!(expected[comm.rank() as usize], world_rank, "{}", comm.name());
    let mut all = vec![-1i32; expected.len()];
    comm.all_gather(&[world_rank as i32], &mut all).unwrap();
    assert!(all.iter().zip(expected).all(|(a, b)| *a == *b as i32), "{all:?} {expected:?}");
    let mut data = vec![f64::from(world_rank); 20_000];
    comm.all_reduce_in_place(&mut data, ReduceOp::Max).unwrap();
    let most = f64::from(*expected.iter().max().unwrap());
    assert!(data.iter().all(|v| *v == most));
}

#[test]
fn random_parts_in_random_orders_on_1_to_8_ranks() {
    for ranks in 1..=8u32 {
        let seed = Random::new().next();
        on_ranks(ranks, &config(), |comm| {
            let mut random = Random::from_seed(seed);
            for _ in 0..4 {
                let wishes: Vec<(Option<u32>, i32)> = (0..ranks)
                    .map(|_| {
                        let color = random.below(4) as u32;
                        ((color < 3).then_some(color), random.below(5) as i32 - 2)
                    })
                    .collect();
                let me = comm.rank();
                let (color, key) = wishes[me as usize];
                let part = comm.split(color, key).unwrap();
                assert_eq!(part.is_some(), color.is_some(), "seed {seed}");
                let Some(part) = part else { continue };
                let mut expected: Vec<u32> =
                    (0..ranks).filter(|r| wishes[*r as usize].0 == color).collect();
                expected.sort_by_key(|r| (wishes[*r as usize].1, *r));
                check(&part, me, &expected);
            }
            comm.barrier().unwrap();
        });
    }
}

#[test]
fn a_part_lives_without_its_parent() {
    let parts = Mutex::new(Vec::new());
    on_ranks(4, &config(), |comm| {
        let half = comm.split(Some(comm.rank() / 2), 0).unwrap().unwrap();
        let again = half.split(Some(7), -(half.rank() as i32)).unwrap().unwrap();
        parts.lock().unwrap().push((comm.rank(), half, again));
    });
    thread::scope(|scope| {
        for (rank, half, again) in parts.into_inner().unwrap() {
            scope.spawn(move || {
                let first = rank / 2 * 2;
                check(&half, rank, &[first, first + 1]);
                drop(half);
                check(&again, rank, &[first + 1, first]);
            });
        }
    });
}

#[test]
fn parts_work_beside_one_another_in_any_order_from_several_threads() {
    on_ranks(4, &config(), |world| {
        let me = world.rank();
        let rows = world.split(Some(me / 2), 0).unwrap().unwrap();
        let columns = world.split(Some(me % 2), 0).unwrap().unwrap();
        let same = world.split(Some(0), -(me as i32)).unwrap().unwrap();
        thread::scope(|scope| {
            let lists =
                [(world, 6), (&rows, me / 2 * 4 + 1), (&columns, me % 2 * 2 + 2), (&same, 6)];
            for (at, (comm, sum)) in lists.into_iter().enumerate() {
                scope.spawn(move || {
                    for round in 0..60 {
                        let mut data = vec![i64::from(me); 1 + round * at * 100];
                        comm.all_reduce_in_place(&mut data, ReduceOp::Sum).unwrap();
                        assert!(data.iter().all(|v| *v == i64::from(sum)));
                    }
                });
            }
        });
        // One thread may drive all of them, each rank in an order of its own.
        let mut random = Random::from_seed(u64::from(me) << 7 | 1);
        for _ in 0..20 {
            let mut works = Vec::new();
            for comm in [&rows, &columns, &same] {
                let mut data = vec![1i64; 300];
                let memory = Memory::Contiguous(data.as_mut_ptr().cast());
                let call = Call {
                    collective: Collective::AllReduce,
                    dtype: DType::I64,
                    op: ReduceOp::Sum,
                    premul: 1.0,
                    count: 300,
                    input: memory.clone(),
                    output: memory,
                };
                // SAFETY:
                // - The heap memory of `data` stays where it is and is kept until the work ends.
                works.push(unsafe { comm.start(call, None, Keep::new(data)) }.unwrap());
            }
            while !works.is_empty() {
                works.swap_remove(random.below(works.len())).wait(None).unwrap();
            }
        }
    });
}

#[test]
fn threads_split_their_communicators_at_the_same_time() {
    let store = stepccl::MemoryStore::new();
    thread::scope(|scope| {
        for rank in 0..2u32 {
            for c in 0..3u32 {
                let store = &store;
                scope.spawn(move || {
                    let name = format!("t{c}.0");
                    let comm = Communicator::new(store, &name, rank, 2, &config()).unwrap();
                    for i in 0..5 {
                        let alone = comm.split(Some(rank), 0).unwrap().unwrap();
                        check(&alone, rank, &[rank]);
                        let both = comm.split(Some(i), -(rank as i32)).unwrap().unwrap();
                        check(&both, rank, &[1, 0]);
                    }
                });
            }
        }
    });
}

#[test]
fn a_part_that_cannot_be_is_an_error_of_its_ranks_and_no_harm_to_the_others() {
    on_ranks(4, &config(), |comm| {
        let me = comm.rank();
        // The ranks of one part want other settings.
        let pipeline_depth = (me < 2).then_some(1 + me);
        let part = Config { pipeline_depth, ..config() };
        let made = comm.split_with(Some(me / 2), 0, &part);
        match (me, made) {
            (0 | 1, Err(error)) => {
                let text = error.to_string();
                assert!(matches!(error, Error::Disagreement { .. }), "{text}");
                assert!(text.contains("pipeline_depth"), "{text}");
            }
            (_, made) => check(&made.unwrap().unwrap(), me, &[2, 3]),
        }
        check(&comm.split(Some(1), 0).unwrap().unwrap(), me, &[0, 1, 2, 3]);
    });
}

#[test]
fn a_name_that_grows_too_long_is_refused_on_every_rank() {
    on_ranks(2, &config(), |comm| {
        let mut parts = Vec::new();
        let error = loop {
            let last = parts.last().unwrap_or(comm);
            match last.split(Some(u32::MAX), 0) {
                Ok(part) => parts.push(part.unwrap()),
                Err(error) => break error,
            }
            assert!(parts.len() < 40);
        };
        assert!(matches!(error, Error::Bootstrap(_)), "{error}");
        let last = parts.last().unwrap();
        last.barrier().unwrap();
    });
}

#[test]
fn a_lost_rank_fails_a_split_with_the_error_of_the_parent() {
    let started = Instant::now();
    on_ranks(3, &config(), |comm| {
        if comm.rank() == 2 {
            return;
        }
        let error = comm.split(Some(0), 0).unwrap_err();
        assert!(matches!(error, Error::PeerLost { .. }), "{error}");
    });
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn closing_waits_for_what_was_started_and_ends_what_comes_later() {
    on_ranks(2, &config(), |comm| {
        let mut works = Vec::new();
        for _ in 0..20 {
            let mut data = vec![1i64; 50_000];
            let memory = Memory::Contiguous(data.as_mut_ptr().cast());
            let call = Call {
                collective: Collective::AllReduce,
                dtype: DType::I64,
                op: ReduceOp::Sum,
                premul: 1.0,
                count: 50_000,
                input: memory.clone(),
                output: memory,
            };
            // SAFETY:
            // - The heap memory of `data` stays where it is and is kept until the work ends.
            works.push(unsafe { comm.start(call, None, Keep::new(data)) }.unwrap());
        }
        comm.close();
        for work in works {
            work.outcome().expect("it has ended").unwrap();
        }
        let error = comm.barrier().unwrap_err();
        assert!(matches!(error, Error::Broken { .. }), "{error}");
        comm.close();
    });
}
