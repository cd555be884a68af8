//! Waits that are left before their end: the operation goes on, in its order, and keeps its memory.

mod common;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use common::{Random, config, on_ranks};
use stepccl::{
    Call, Collective, Communicator, DType, Keep, Leave, Memory, Outcome, ReduceOp, Request, Uneven,
    UnevenCall,
};

/// What an operation works on; tells its end by what it holds then.
struct Data {
    values: Vec<i32>,
    ended: Sender<Vec<i32>>,
}

impl Drop for Data {
    fn drop(&mut self) {
        let _ = self.ended.send(std::mem::take(&mut self.values));
    }
}

fn memory(values: &mut [i32]) -> Memory {
    Memory::Contiguous(values.as_mut_ptr().cast())
}

fn sum(values: &mut [i32]) -> Request {
    let (input, output) = (memory(values), memory(values));
    let collective = Collective::AllReduce;
    let (dtype, op, premul, count) = (DType::I32, ReduceOp::Sum, 1.0, values.len());
    Call { collective, dtype, op, premul, count, input, output }.into()
}

/// Wait for the request that `make` makes of `values`, and leave at the first question.
fn leave(
    comm: &Communicator,
    mut values: Vec<i32>,
    make: impl FnOnce(&mut [i32]) -> Request,
) -> (Option<Outcome>, Receiver<Vec<i32>>) {
    let (ended, end) = channel();
    let request = make(&mut values);
    let data = Arc::new(Data { values, ended });
    let keep = || Keep::new(Arc::clone(&data));
    // SAFETY:
    // - The heap memory of the values stays where it is. Here it outlives the call; after it, it is
    //   in what was kept.
    let outcome = unsafe { comm.run_while(request, None, Leave { keep: &keep, go_on: &|| false }) };
    (outcome, end)
}

#[test]
fn what_was_left_goes_on_in_its_order() {
    let mut random = Random::new();
    let count = [1, 1000, 3_000_000][random.below(3)];
    println!("seed {}, {count} elements", random.seed());
    let (told, tells) = channel();
    let tells = Mutex::new(tells);
    on_ranks(2, &config(), |comm| {
        if comm.rank() == 0 {
            let (outcome, end) = leave(comm, vec![1; count], sum);
            assert!(outcome.is_none(), "{outcome:?}");
            told.send(()).unwrap();
            // Behind it, and right.
            let mut next = [5; 3];
            comm.all_reduce_in_place(&mut next, ReduceOp::Sum).unwrap();
            assert_eq!(next, [6; 3]);
            assert!(end.recv().unwrap().into_iter().all(|v| v == 3));
        } else {
            // Only now: the other one has left its wait.
            tells.lock().unwrap().recv().unwrap();
            let mut values = vec![2; count];
            comm.all_reduce_in_place(&mut values, ReduceOp::Sum).unwrap();
            assert!(values.into_iter().all(|v| v == 3));
            comm.all_reduce_in_place(&mut [1; 3], ReduceOp::Sum).unwrap();
        }
    });
}

#[test]
fn all_of_several_go_on() {
    let (told, tells) = channel();
    let tells = Mutex::new(tells);
    // Blocks of unlike lengths are gathered by as many broadcasts.
    let counts: [usize; 2] = [3, 4];
    let gather = |rank: usize, values: &mut [i32]| {
        let own = memory(&mut values[rank * counts[0]..]);
        let output = memory(values);
        let uneven = Uneven::AllGather { counts: counts.into() };
        let (dtype, op, premul) = (DType::I32, ReduceOp::Sum, 1.0);
        Request::from(UnevenCall { uneven, dtype, op, premul, input: own, output })
    };
    on_ranks(2, &config(), |comm| {
        let rank = comm.rank() as usize;
        let values = vec![rank as i32 + 1; 7];
        if rank == 0 {
            let (outcome, end) = leave(comm, values, |v| gather(0, v));
            assert!(outcome.is_none(), "{outcome:?}");
            told.send(()).unwrap();
            comm.barrier().unwrap();
            assert_eq!(end.recv().unwrap(), [1, 1, 1, 2, 2, 2, 2]);
        } else {
            tells.lock().unwrap().recv().unwrap();
            let mut values = values;
            let request = gather(1, &mut values);
            // SAFETY:
            // - The values outlive the call.
            unsafe { comm.run(request, None) }.unwrap();
            assert_eq!(values, [1, 1, 1, 2, 2, 2, 2]);
            comm.barrier().unwrap();
        }
    });
}
