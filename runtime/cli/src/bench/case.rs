//! What is measured, apart from the size.

use stepccl::{Collective, DType, ReduceOp};

use super::Args;

/// A collective with its root, a type and an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub collective: Collective,
    pub dtype: DType,
    /// Ignored where nothing is reduced.
    pub op: ReduceOp,
    pub ranks: u32,
}

impl Case {
    /// Every case that the arguments ask for; those that would be the same only once, and none
    /// whose type does not have the operation.
    pub fn all(args: &Args) -> Vec<Self> {
        let collective = args.collective.with_root(args.root);
        let types = if collective == Collective::Barrier { 1 } else { usize::MAX };
        let ops = if collective.reduces() { usize::MAX } else { 1 };
        let ops = || args.ops.0.iter().copied().take(ops);
        let types = args.dtypes.0.iter().copied().take(types);
        let ranks = args.ranks;
        types
            .flat_map(|dtype| ops().map(move |op| Self { collective, dtype, op, ranks }))
            .filter(|case| !collective.reduces() || case.op.applies_to(case.dtype))
            .collect()
    }

    /// Blocks of the larger buffer of any rank.
    pub fn blocks(&self) -> usize {
        (0..self.ranks)
            .map(|rank| {
                let input = self.collective.input_blocks(rank, self.ranks);
                input.max(self.collective.output_blocks(rank, self.ranks))
            })
            .max()
            .unwrap_or(1)
            .max(1) as usize
    }

    /// Name of the operation, as the report has it.
    pub fn op_name(&self) -> &'static str {
        if self.collective.reduces() { self.op.name() } else { "none" }
    }
}
