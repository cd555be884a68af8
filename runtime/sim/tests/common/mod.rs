//! Inputs, and what must come out.

use stepccl_plan::{Collective, ReduceOp};
use stepccl_sim::Element;

/// Input of every rank; each element differs from all others.
pub fn inputs<T>(
    collective: Collective,
    ranks: u32,
    count: usize,
    number: impl Fn(u64) -> T,
) -> Vec<Vec<T>> {
    let mut next = 0;
    let input = |rank| {
        let blocks = collective.input_blocks(rank, ranks) as usize;
        (0..blocks * count)
            .map(|_| {
                next += 1;
                number(next)
            })
            .collect()
    };
    (0..ranks).map(input).collect()
}

/// Output of every rank, made the plain way, in order of rank.
pub fn outputs<T: Element>(
    collective: Collective,
    op: ReduceOp,
    count: usize,
    inputs: &[Vec<T>],
) -> Vec<Vec<T>> {
    let ranks = inputs.len() as u32;
    let block = |rank: u32, block: u32| {
        let first = block as usize * count;
        &inputs[rank as usize][first..first + count]
    };
    let reduced = |of: u32| {
        let mut all = block(0, of).to_vec();
        for rank in 1..ranks {
            for (sum, more) in all.iter_mut().zip(block(rank, of)) {
                *sum = sum.combine(*more, op);
            }
        }
        if op == ReduceOp::Avg {
            all.iter_mut().for_each(|sum| *sum = sum.divide(ranks));
        }
        all
    };
    let output = |rank: u32| -> Vec<T> {
        if collective.output_blocks(rank, ranks) == 0 {
            return Vec::new();
        }
        match collective {
            Collective::AllReduce | Collective::Reduce { .. } => reduced(0),
            Collective::ReduceScatter => reduced(rank),
            Collective::Broadcast { root } => block(root, 0).to_vec(),
            Collective::Scatter { root } => block(root, rank).to_vec(),
            Collective::AllToAll => {
                (0..ranks).flat_map(|from| block(from, rank)).copied().collect()
            }
            _ => (0..ranks).flat_map(|from| block(from, 0)).copied().collect(),
        }
    };
    (0..ranks).map(output).collect()
}
