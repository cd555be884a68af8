//! How the contributions of ranks are combined.

use std::fmt;

/// Combination of the elements that the ranks contribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReduceOp {
    /// Sum; integers wrap.
    Sum,
    /// Largest; a NaN of any rank is the result.
    Max,
    /// Smallest; a NaN of any rank is the result.
    Min,
    /// Sum divided by the number of ranks; integers truncate towards zero.
    Avg,
}

impl ReduceOp {
    /// Every operation, in the order in which tables show them.
    pub const ALL: [Self; 4] = [Self::Sum, Self::Max, Self::Min, Self::Avg];

    /// Name as nccl-tests prints it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Max => "max",
            Self::Min => "min",
            Self::Avg => "avg",
        }
    }
}

impl fmt::Display for ReduceOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
