//! Several communicators of the same ranks at once, and of parts of them.

mod common;

use common::config;
use stepccl::{Call, Collective, Communicator, DType, Keep, Memory, MemoryStore, ReduceOp};

fn start(comm: &Communicator, data: &mut [i64]) -> stepccl::Work {
    let memory = Memory::Contiguous(data.as_mut_ptr().cast());
    let call = Call {
        collective: Collective::AllReduce,
        dtype: DType::I64,
        op: ReduceOp::Sum,
        premul: 1.0,
        count: data.len(),
        input: memory.clone(),
        output: memory,
    };
    // SAFETY:
    // - The callers keep `data` and leave it alone until they have waited.
    unsafe { comm.start(call, None, Keep::default()) }.unwrap()
}

#[test]
fn started_and_waited_for_in_another_order_on_every_rank() {
    const COMMS: usize = 4;
    let store = MemoryStore::new();
    std::thread::scope(|scope| {
        for rank in 0..3u32 {
            let store = &store;
            scope.spawn(move || {
                let comms: Vec<_> = (0..COMMS)
                    .map(|c| {
                        Communicator::new(store, &format!("c{c}.0"), rank, 3, &config()).unwrap()
                    })
                    .collect();
                for round in 0..30usize {
                    let mut data: Vec<Vec<i64>> =
                        (0..COMMS).map(|c| vec![(c * 100 + round) as i64; 1000 * c + 10]).collect();
                    let mut works: Vec<Option<stepccl::Work>> = (0..COMMS).map(|_| None).collect();
                    for i in 0..COMMS {
                        let c = (i + rank as usize + round) % COMMS;
                        works[c] = Some(start(&comms[c], &mut data[c]));
                    }
                    for i in 0..COMMS {
                        let c = (COMMS + i - rank as usize) % COMMS;
                        works[c].take().unwrap().wait(None).unwrap();
                    }
                    for (c, data) in data.iter().enumerate() {
                        let sum = 3 * (c * 100 + round) as i64;
                        assert!(data.iter().all(|v| *v == sum), "communicator {c}, round {round}");
                    }
                }
            });
        }
    });
}

#[test]
fn from_a_thread_each() {
    let store = MemoryStore::new();
    std::thread::scope(|scope| {
        for rank in 0..2u32 {
            for c in 0..3usize {
                let store = &store;
                scope.spawn(move || {
                    let name = format!("t{c}.0");
                    let comm = Communicator::new(store, &name, rank, 2, &config()).unwrap();
                    for i in 0..200 {
                        let mut data = vec![i; 100 * c + 1];
                        comm.all_reduce_in_place(&mut data, ReduceOp::Max).unwrap();
                        assert!(data.iter().all(|v| *v == i));
                    }
                });
            }
        }
    });
}

#[test]
fn of_parts_of_the_ranks() {
    let store = MemoryStore::new();
    std::thread::scope(|scope| {
        for rank in 0..4u32 {
            let store = &store;
            scope.spawn(move || {
                let world = Communicator::new(store, "world.0", rank, 4, &config()).unwrap();
                let pair = format!("pair{}.0", rank / 2);
                let pair = Communicator::new(store, &pair, rank % 2, 2, &config()).unwrap();
                for _ in 0..20 {
                    let mut data = [i64::from(rank)];
                    pair.all_reduce_in_place(&mut data, ReduceOp::Sum).unwrap();
                    assert_eq!(data[0], i64::from(rank / 2 * 4 + 1));
                    world.all_reduce_in_place(&mut data, ReduceOp::Sum).unwrap();
                    assert_eq!(data[0], 12);
                }
            });
        }
    });
}
