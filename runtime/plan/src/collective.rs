//! The collectives and the shape of their buffers.

use std::fmt;

/// A collective operation over all ranks of a communicator.
///
/// Sizes are in **blocks**: a block is the `count` elements the caller names. `n` is the number
/// of ranks.
///
/// | collective | input blocks | output blocks |
/// |---|---|---|
/// | all_reduce, broadcast (root), reduce (root) | 1 | 1 |
/// | all_gather, gather (root) | 1 | n |
/// | reduce_scatter, scatter (root) | n | 1 |
/// | all_to_all | n | n |
/// | barrier | 0 | 0 |
///
/// Only the root of reduce and gather has an output, only the root of scatter has an input.
/// broadcast reads the root's input and writes every rank's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Collective {
    /// Every rank gets the reduction of all inputs.
    AllReduce,
    /// Every rank gets the root's input.
    Broadcast {
        /// Rank whose input is sent.
        root: u32,
    },
    /// The root gets the reduction of all inputs.
    Reduce {
        /// Rank that gets the result.
        root: u32,
    },
    /// Every rank gets every input, in order of rank.
    AllGather,
    /// Rank i gets the reduction of block i of all inputs.
    ReduceScatter,
    /// Rank i gets block i of every input, in order of rank.
    AllToAll,
    /// The root gets every input, in order of rank.
    Gather {
        /// Rank that gets the inputs.
        root: u32,
    },
    /// Rank i gets block i of the root's input.
    Scatter {
        /// Rank whose blocks are sent.
        root: u32,
    },
    /// No rank returns before every rank has called.
    Barrier,
}

impl Collective {
    /// Every collective, with root 0 where there is one.
    pub const ALL: [Self; 9] = [
        Self::AllReduce,
        Self::Broadcast { root: 0 },
        Self::Reduce { root: 0 },
        Self::AllGather,
        Self::ReduceScatter,
        Self::AllToAll,
        Self::Gather { root: 0 },
        Self::Scatter { root: 0 },
        Self::Barrier,
    ];

    /// Name as users write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::Broadcast { .. } => "broadcast",
            Self::Reduce { .. } => "reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::AllToAll => "all_to_all",
            Self::Gather { .. } => "gather",
            Self::Scatter { .. } => "scatter",
            Self::Barrier => "barrier",
        }
    }

    /// The collective of that name, with root 0 where there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name() == name)
    }

    /// Root of a rooted collective.
    #[must_use]
    pub const fn root(self) -> Option<u32> {
        match self {
            Self::Broadcast { root }
            | Self::Reduce { root }
            | Self::Gather { root }
            | Self::Scatter { root } => Some(root),
            _ => None,
        }
    }

    /// The same collective with another root; unchanged where there is none.
    #[must_use]
    pub const fn with_root(self, root: u32) -> Self {
        match self {
            Self::Broadcast { .. } => Self::Broadcast { root },
            Self::Reduce { .. } => Self::Reduce { root },
            Self::Gather { .. } => Self::Gather { root },
            Self::Scatter { .. } => Self::Scatter { root },
            other => other,
        }
    }

    /// Whether contributions are combined, so that a [`ReduceOp`](crate::ReduceOp) applies.
    #[must_use]
    pub const fn reduces(self) -> bool {
        matches!(self, Self::AllReduce | Self::Reduce { .. } | Self::ReduceScatter)
    }

    /// Whether an input has a block for each rank, where there is an input.
    #[must_use]
    pub const fn splits_input(self) -> bool {
        matches!(self, Self::ReduceScatter | Self::AllToAll | Self::Scatter { .. })
    }

    /// Block of every input that is meant for `rank`.
    #[must_use]
    pub const fn block_for(self, rank: u32) -> u32 {
        if self.splits_input() { rank } else { 0 }
    }

    /// Whether `rank` gets something from `from`, another rank; in a barrier, that it has called.
    #[must_use]
    pub const fn reads(self, rank: u32, from: u32) -> bool {
        if rank == from {
            return false;
        }
        match self {
            Self::Broadcast { root } | Self::Scatter { root } => from == root,
            Self::Reduce { root } | Self::Gather { root } => rank == root,
            _ => true,
        }
    }

    /// Number of blocks `rank` must give as input.
    #[must_use]
    pub const fn input_blocks(self, rank: u32, ranks: u32) -> u32 {
        match self {
            Self::AllReduce | Self::Reduce { .. } | Self::AllGather | Self::Gather { .. } => 1,
            Self::Broadcast { root } => (rank == root) as u32,
            Self::Scatter { root } => {
                if rank == root {
                    ranks
                } else {
                    0
                }
            }
            Self::ReduceScatter | Self::AllToAll => ranks,
            Self::Barrier => 0,
        }
    }

    /// Number of blocks `rank` gets as output.
    #[must_use]
    pub const fn output_blocks(self, rank: u32, ranks: u32) -> u32 {
        match self {
            Self::AllReduce
            | Self::Broadcast { .. }
            | Self::ReduceScatter
            | Self::Scatter { .. } => 1,
            Self::Reduce { root } => (rank == root) as u32,
            Self::AllGather | Self::AllToAll => ranks,
            Self::Gather { root } => {
                if rank == root {
                    ranks
                } else {
                    0
                }
            }
            Self::Barrier => 0,
        }
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
