//! Long blocks between a root and the others, which both ends move: what arrives, and that nobody
//! writes into memory of a rank that has given up.

mod common;

use std::time::Duration;

use common::{Random, config, on_ranks};
use stepccl::{Call, Collective, Communicator, Config, DType, Memory, ReduceOp};

fn bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut random = Random::from_seed(seed);
    (0..count).map(|_| random.next() as u8).collect()
}

fn call(collective: Collective, count: usize, input: Memory, output: Memory) -> Call {
    Call { collective, dtype: DType::U8, op: ReduceOp::Sum, premul: 1.0, count, input, output }
}

fn at(memory: &mut [u8], byte: usize) -> Memory {
    Memory::Contiguous(memory[byte..].as_mut_ptr())
}

fn run(comm: &Communicator, call: Call) {
    // SAFETY:
    // - The memory lives through the call and holds the blocks of the collective.
    unsafe { comm.run(call, None) }.unwrap();
}

/// A byte more than the blocks have lies behind each buffer, and must stay as it is.
const GUARD: u8 = 0xa5;

fn guarded(blocks: usize, count: usize) -> Vec<u8> {
    vec![GUARD; blocks * count + 1]
}

/// Broadcast, scatter and gather, in place at the root or apart, against what must arrive.
fn everything(comm: &Communicator, seed: u64, count: usize, in_place: bool) {
    let (rank, ranks) = (comm.rank() as usize, comm.ranks() as usize);
    let root = (seed % ranks as u64) as usize;
    let is_root = rank == root;
    let all = bytes(seed, count * ranks);
    let block = |index: usize| &all[index * count..][..count];
    let what = format!(
        "{count} bytes, rank {rank} of {ranks}, root {root}, in place: {in_place}, seed {seed}"
    );

    let mut input = block(root).to_vec();
    let mut output = guarded(1, count);
    let broadcast = Collective::Broadcast { root: root as u32 };
    if is_root && in_place {
        output[..count].copy_from_slice(&input);
        let memory = at(&mut output, 0);
        run(comm, call(broadcast, count, memory.clone(), memory));
    } else {
        let from = if is_root { at(&mut input, 0) } else { Memory::None };
        run(comm, call(broadcast, count, from, at(&mut output, 0)));
    }
    assert!(output[..count] == *block(root) && output[count] == GUARD, "broadcast of {what}");

    let mut input = all.clone();
    let mut output = guarded(1, count);
    let scatter = Collective::Scatter { root: root as u32 };
    let (from, to) = match (is_root, in_place) {
        (true, true) => (at(&mut input, 0), at(&mut input, root * count)),
        (true, false) => (at(&mut input, 0), at(&mut output, 0)),
        (false, _) => (Memory::None, at(&mut output, 0)),
    };
    run(comm, call(scatter, count, from, to));
    if !is_root || !in_place {
        assert!(output[..count] == *block(rank) && output[count] == GUARD, "scatter of {what}");
    }
    assert!(input == all, "input of scatter of {what}");

    let mut input = block(rank).to_vec();
    let mut output = guarded(ranks, count);
    let gather = Collective::Gather { root: root as u32 };
    let (from, to) = match (is_root, in_place) {
        (true, true) => {
            output[root * count..][..count].copy_from_slice(&input);
            (at(&mut output, root * count), at(&mut output, 0))
        }
        (true, false) => (at(&mut input, 0), at(&mut output, 0)),
        (false, _) => (at(&mut input, 0), Memory::None),
    };
    run(comm, call(gather, count, from, to));
    if is_root {
        assert!(output[..count * ranks] == all[..], "gather of {what}");
    }
    assert_eq!(output[count * ranks], GUARD, "gather of {what}");
    assert!(input == block(rank), "input of gather of {what}");
}

#[test]
fn both_ends_move_what_belongs_there() {
    for ranks in [2, 3, 5] {
        let mut random = Random::new();
        let config = Config { single_copy: Some(true), ..config() };
        let turns: Vec<_> = [256 << 10, 262_145, 300_000 + random.below(4_000_000)]
            .into_iter()
            .flat_map(|count| [(count, true), (count, false)])
            .map(|(count, in_place)| (random.next(), count, in_place))
            .collect();
        let stats = on_ranks(ranks, &config, |comm| {
            for (seed, count, in_place) in &turns {
                everything(comm, *seed, *count, *in_place);
            }
            comm.stats()
        });
        for stats in stats {
            let told = &stats.single_copy;
            let writes = told.starts_with("on") && !told.contains("reads only");
            assert!(!writes || stats.counters.pushed_bytes > 0, "{stats:?}");
        }
    }
}

/// A rank that was aborted has its memory for itself, although a peer was writing there.
#[test]
fn nobody_writes_into_memory_of_a_rank_that_has_given_up() {
    const LENGTH: usize = 24 << 20;
    for turn in 0..20u64 {
        let config = Config { single_copy: Some(true), ..config() };
        on_ranks(2, &config, |comm| {
            let mut memory = vec![comm.rank() as u8; LENGTH];
            let mut random = Random::new();
            let over = std::thread::scope(|scope| {
                if comm.rank() == 1 {
                    scope.spawn(move || {
                        std::thread::sleep(Duration::from_micros(random.next() % 20_000));
                        comm.abort("to see who writes");
                    });
                }
                // Rank 0 writes the second half of rank 1's memory.
                (0..1000).find_map(|_| comm.broadcast(&mut memory, 0).err())
            });
            assert!(over.is_some(), "turn {turn}: nothing ended it");
            if comm.rank() == 1 {
                memory.fill(0x5a);
                std::thread::sleep(Duration::from_millis(20));
                let wrong = memory.iter().position(|byte| *byte != 0x5a);
                assert_eq!(wrong, None, "turn {turn}: written after the end");
            }
        });
    }
}
