//! What is measured, apart from the size.

use stepccl::{DType, ReduceOp};

use super::Args;
use super::operation::Operation;

/// An operation with its root, a type and how it reduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub operation: Operation,
    pub dtype: DType,
    /// Ignored where nothing is reduced.
    pub op: ReduceOp,
    pub ranks: u32,
}

impl Case {
    /// Every case that the arguments ask for; those that would be the same only once, and none
    /// whose type does not have the operation.
    pub fn all(args: &Args) -> Vec<Self> {
        let operation = args.operation.with_root(args.root).with_members(args.members);
        let types = if operation.is_barrier() { 1 } else { usize::MAX };
        let ops = if operation.reduces() { usize::MAX } else { 1 };
        let ops = || args.ops.0.iter().copied().take(ops);
        let types = args.dtypes.0.iter().copied().take(types);
        let ranks = args.ranks;
        types
            .flat_map(|dtype| ops().map(move |op| Self { operation, dtype, op, ranks }))
            .filter(|case| !operation.reduces() || case.op.applies_to(case.dtype))
            .collect()
    }

    /// Blocks of the larger buffer of any rank.
    pub fn blocks(&self) -> usize {
        (0..self.ranks)
            .map(|rank| {
                let input = self.operation.input_blocks(rank, self.ranks);
                input.max(self.operation.output_blocks(rank, self.ranks))
            })
            .max()
            .unwrap_or(1)
            .max(1) as usize
    }

    /// Name of the operation, as the report has it.
    pub fn op_name(&self) -> &'static str {
        if self.operation.reduces() { self.op.name() } else { "none" }
    }
}
