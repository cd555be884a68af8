//! Why a topology or a plan was refused.

use crate::{Algorithm, Collective};

/// Why a topology or a plan was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A communicator without ranks.
    #[error("0 ranks; a communicator has at least 1")]
    NoRanks,
    /// More ranks than plans are made for.
    #[error("{ranks} ranks; at most {limit} are possible")]
    TooManyRanks {
        /// Ranks asked for.
        ranks: usize,
        /// Most possible.
        limit: u32,
    },
    /// No node, or a node that would be empty.
    #[error("{nodes} nodes for {ranks} ranks; give 1 to {ranks} nodes")]
    BadNodes {
        /// Nodes asked for.
        nodes: u32,
        /// Ranks to place on them.
        ranks: u32,
    },
    /// The root is not a rank.
    #[error("root {root} of {collective}: ranks are 0 to {last}", last = ranks - 1)]
    RootOutOfRange {
        /// The collective.
        collective: Collective,
        /// Root asked for.
        root: u32,
        /// Number of ranks.
        ranks: u32,
    },
    /// The algorithm has no plan for this collective on this topology.
    #[error(
        "{algorithm} has no plan for {collective} of {ranks} ranks on {nodes} nodes: {reason}; \
         direct always has one"
    )]
    Unsupported {
        /// The algorithm.
        algorithm: Algorithm,
        /// The collective.
        collective: Collective,
        /// Number of ranks.
        ranks: u32,
        /// Number of nodes.
        nodes: u32,
        /// What is missing.
        reason: &'static str,
    },
    /// No algorithm has that name.
    #[error("algorithm {name:?} is unknown; choose one of {known}", known = Algorithm::known())]
    UnknownAlgorithm {
        /// Name asked for.
        name: String,
    },
    /// No plan fits the limits.
    #[error("no plan for {collective} fits: {reason}")]
    NothingFits {
        /// The collective.
        collective: Collective,
        /// The reason of each algorithm.
        reason: String,
    },
}
