//! Uneven collectives against references, on fresh random lengths and data.

mod common;

use common::{Random, Value, config, on_ranks, random_vec};
use stepccl::{Communicator, DType, Error, Memory, ReduceOp, Uneven, UnevenCall};

fn memory<T>(data: &mut [T]) -> Memory {
    if data.is_empty() { Memory::None } else { Memory::Contiguous(data.as_mut_ptr().cast()) }
}

fn counts(random: &mut Random, n: usize) -> Vec<usize> {
    let most = [3, 300, 30_000][random.below(3)];
    let even = random.below(5) == 0;
    let first = random.below(most);
    (0..n)
        .map(|_| match random.below(4) {
            _ if even => first,
            0 => 0,
            _ => random.below(most),
        })
        .collect()
}

/// Run `call` on blocks one behind the other, or each somewhere else.
fn run(comm: &Communicator, uneven: Uneven, op: ReduceOp, input: Memory, output: Memory) {
    let call = UnevenCall { uneven, dtype: DType::I32, op, premul: 1.0, input, output };
    // SAFETY:
    // - The callers keep the memory, and leave it alone, until this returns.
    unsafe { comm.run(call, None) }.unwrap();
}

/// Blocks of their own from one list.
fn apart(data: &[i32], counts: &[usize]) -> Vec<Vec<i32>> {
    let mut at = 0;
    counts
        .iter()
        .map(|count| {
            at += count;
            data[at - count..at].to_vec()
        })
        .collect()
}

fn pointers(blocks: &mut [Vec<i32>]) -> Memory {
    Memory::Blocks(blocks.iter_mut().map(|b| b.as_mut_ptr().cast()).collect())
}

fn everything(comm: &Communicator, seed: u64, rounds: usize) {
    let (me, n) = (comm.rank() as usize, comm.ranks() as usize);
    let mut random = Random::from_seed(seed);
    for round in 0..rounds {
        let what = format!("round {round}, rank {me} of {n}, seed {seed}");
        let list = counts(&mut random, n);
        let total: usize = list.iter().sum();
        let start: usize = list[..me].iter().sum();
        let mut inputs: Vec<Vec<i32>> = list.iter().map(|c| random_vec(&mut random, *c)).collect();
        let counts_of = || Uneven::AllGather { counts: list.clone().into() };
        let mut out = vec![i32::POISON; total];
        run(comm, counts_of(), ReduceOp::Sum, memory(&mut inputs[me]), memory(&mut out));
        assert_eq!(out, inputs.concat(), "all_gather, {what}");

        let mut out = vec![i32::POISON; total];
        out[start..start + list[me]].copy_from_slice(&inputs[me]);
        let own = memory(&mut out[start..start + list[me]]);
        run(comm, counts_of(), ReduceOp::Sum, own, memory(&mut out));
        assert_eq!(out, inputs.concat(), "all_gather in place, {what}");

        let mut blocks: Vec<_> = list.iter().map(|c| vec![i32::POISON; *c]).collect();
        run(comm, counts_of(), ReduceOp::Sum, memory(&mut inputs[me]), pointers(&mut blocks));
        assert_eq!(blocks, inputs, "all_gather to blocks, {what}");

        let mut many: Vec<Vec<i32>> = (0..n).map(|_| random_vec(&mut random, total)).collect();
        let op = [ReduceOp::Sum, ReduceOp::Max][random.below(2)];
        let expected: Vec<i32> = (start..start + list[me])
            .map(|i| match op {
                ReduceOp::Max => many.iter().map(|v| v[i]).max().unwrap(),
                _ => many.iter().map(|v| v[i]).fold(0, i32::wrapping_add),
            })
            .collect();
        let counts_of = || Uneven::ReduceScatter { counts: list.clone().into() };
        let mut blocks = apart(&many[me], &list);
        let mut out = vec![i32::POISON; list[me]];
        run(comm, counts_of(), op, pointers(&mut blocks), memory(&mut out));
        assert_eq!(out, expected, "reduce_scatter of blocks, {what}");
        let input = memory(&mut many[me]);
        let own = memory(&mut many[me][start..start + list[me]]);
        run(comm, counts_of(), op, input, own);
        assert_eq!(many[me][start..start + list[me]], expected, "reduce_scatter in place, {what}");

        let table: Vec<Vec<usize>> = (0..n).map(|_| counts(&mut random, n)).collect();
        let data: Vec<Vec<Vec<i32>>> = table
            .iter()
            .map(|row| row.iter().map(|c| random_vec(&mut random, *c)).collect())
            .collect();
        let receive: Vec<usize> = table.iter().map(|row| row[me]).collect();
        let expected: Vec<Vec<i32>> = data.iter().map(|row| row[me].clone()).collect();
        let lengths =
            || Uneven::AllToAll { send: table[me].clone().into(), receive: receive.clone().into() };
        let mut input = data[me].concat();
        let mut out = vec![i32::POISON; receive.iter().sum()];
        run(comm, lengths(), ReduceOp::Sum, memory(&mut input), memory(&mut out));
        assert_eq!(out, expected.concat(), "all_to_all, {what}");
        let (mut input, mut blocks) = (data[me].clone(), expected.clone());
        blocks.iter_mut().for_each(|b| b.fill(i32::POISON));
        run(comm, lengths(), ReduceOp::Sum, pointers(&mut input), pointers(&mut blocks));
        assert_eq!(blocks, expected, "all_to_all of blocks, {what}");
    }
}

#[test]
fn random_lengths_on_1_to_8_ranks() {
    for ranks in 1..=8 {
        let seed = Random::new().next();
        on_ranks(ranks, &config(), |comm| everything(comm, seed, if ranks < 5 { 20 } else { 6 }));
    }
}

#[test]
fn lengths_that_cannot_be_are_refused_at_once() {
    on_ranks(2, &config(), |comm| {
        let mut data = vec![0i32; 64];
        let (input, output) = (memory(&mut data[..32]), memory(&mut data[32..]));
        let refused = |uneven: Uneven, input: &Memory, output: &Memory, name: &str, rule: &str| {
            let call = UnevenCall {
                uneven,
                dtype: DType::I32,
                op: ReduceOp::Sum,
                premul: 1.0,
                input: input.clone(),
                output: output.clone(),
            };
            // SAFETY:
            // - Nothing is started, and the data lives.
            let error = unsafe { comm.run(call, None) }.unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, Error::InvalidArgument { .. }), "{text}");
            assert!(text.contains(name) && text.contains(rule), "{text}");
        };
        let gather = |counts: &[usize]| Uneven::AllGather { counts: counts.into() };
        refused(gather(&[1]), &input, &output, "1 counts", "one for each rank");
        refused(gather(&[1, usize::MAX]), &input, &output, "counts", "2^40");
        refused(gather(&[1, 1 << 40]), &input, &output, "counts", "2^40");
        refused(gather(&[2, 1]), &Memory::None, &output, "input", "must point to memory");
        let behind = Memory::Contiguous(data.as_mut_ptr().wrapping_add(1).cast());
        refused(gather(&[3, 2]), &input, &behind, "output", "apart, or in place");
        let three = Memory::Blocks(vec![data.as_mut_ptr().cast(); 3].into());
        refused(gather(&[2, 1]), &input, &three, "3 blocks", "one for each of 2");
        let scatter = Uneven::ReduceScatter { counts: [1, 2, 3].into() };
        refused(scatter, &input, &output, "3 counts", "one for each rank");
        let me = comm.rank() as usize;
        let mut receive = [1usize, 1];
        receive[me] = 2;
        let all =
            |receive: [usize; 2]| Uneven::AllToAll { send: [1, 1].into(), receive: receive.into() };
        refused(all(receive), &input, &output, "to itself", "must be the same");
        refused(all([1, 1]), &input, &input, "output", "apart");
        comm.barrier().unwrap();
    });
}

#[test]
fn lengths_that_differ_between_ranks_are_an_error_on_every_rank() {
    on_ranks(2, &config(), |comm| {
        let mut data = vec![0i32; 64];
        let (input, output) = (memory(&mut data[..32]), memory(&mut data[32..]));
        let count = 3 + comm.rank() as usize;
        let mut lists = [vec![1; 2], vec![1; 2]];
        let peer = 1 - comm.rank() as usize;
        lists[0][peer] = count;
        lists[1][peer] = count;
        let [send, receive] = lists.map(Into::into);
        let uneven = Uneven::AllToAll { send, receive };
        let call =
            UnevenCall { uneven, dtype: DType::I32, op: ReduceOp::Sum, premul: 1.0, input, output };
        // SAFETY:
        // - The data lives, and nobody touches it, until `run` returns.
        let error = unsafe { comm.run(call, None) }.unwrap_err();
        assert!(matches!(error, Error::MessageMismatch { .. } | Error::PeerLost { .. }), "{error}");
    });
}
