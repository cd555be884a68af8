//! What of a short collective does not depend on its memory, worked out once for calls alike.

use std::ops::Range;

use stepccl_plan::{Collective, DType, ReduceOp};

use crate::Call;
use crate::called::Called;
use crate::error::With;

/// A call of one rank without its memory. Jobs make the same short call again and again.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    collective: Collective,
    dtype: DType,
    op: ReduceOp,
    count: usize,
    /// What is compared between ranks.
    pub called: Called,
    pub name: &'static str,
    pub with: Option<With>,
    pub block_bytes: usize,
    /// Bytes of the larger of input and output.
    pub message_bytes: u64,
    /// Blocks of input and output.
    pub inputs: u32,
    pub outputs: u32,
    /// Block of every input that is meant for this rank.
    pub mine: u32,
    /// Ranks whose posts this one needs; this one does not count.
    pub sources: Range<u32>,
}

impl Shape {
    /// The shape of `call` on `rank` of `ranks`.
    pub fn of(call: &Call, rank: u32, ranks: u32) -> Self {
        let Call { collective, dtype, op, count, .. } = *call;
        let reads = |from: &u32| collective.reads(rank, *from);
        let first = (0..ranks).find(reads).unwrap_or(0);
        let end = (0..ranks).rev().find(reads).map_or(0, |last| last + 1);
        Self {
            collective,
            dtype,
            op,
            count,
            called: Called::of(call),
            name: collective.name(),
            with: collective.root().map(With::Root),
            block_bytes: call.block_bytes(),
            message_bytes: call.message_bytes(rank, ranks),
            inputs: collective.input_blocks(rank, ranks),
            outputs: collective.output_blocks(rank, ranks),
            mine: collective.block_for(rank),
            sources: first..end,
        }
    }

    /// Whether `call` has this shape.
    #[inline]
    pub fn is_of(&self, call: &Call) -> bool {
        self.count == call.count
            && self.collective == call.collective
            && self.dtype == call.dtype
            && self.op == call.op
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    #[test]
    fn sources_are_the_ranks_that_are_read() {
        let (input, output) = (Memory::None, Memory::None);
        for collective in Collective::ALL.into_iter().flat_map(|c| [0, 2].map(|r| c.with_root(r))) {
            let (input, output) = (input.clone(), output.clone());
            let (dtype, op) = (DType::F32, ReduceOp::Sum);
            let call = Call { collective, dtype, op, premul: 1.0, count: 3, input, output };
            for (ranks, rank) in (3..6).flat_map(|ranks| (0..ranks).map(move |rank| (ranks, rank)))
            {
                let shape = Shape::of(&call, rank, ranks);
                let named: Vec<u32> = shape.sources.clone().filter(|from| *from != rank).collect();
                let read: Vec<u32> =
                    (0..ranks).filter(|from| collective.reads(rank, *from)).collect();
                assert_eq!(named, read, "{collective} on rank {rank} of {ranks}");
                assert!(shape.is_of(&call));
                for other in [
                    Call { count: 4, ..call.clone() },
                    Call { dtype: DType::F64, ..call.clone() },
                    Call { op: ReduceOp::Max, ..call.clone() },
                    Call { collective: Collective::Broadcast { root: 1 }, ..call.clone() },
                ] {
                    assert!(!shape.is_of(&other), "{other:?}");
                }
            }
        }
    }
}
