//! The algorithms; one planner a file.

mod builder;
mod direct;
mod halving;
mod hierarchical;
mod ring;
mod tree;
mod two_shot;

use std::fmt;
use std::str::FromStr;

use crate::{Collective, PlanError, Program, Topology};
use builder::Builder;

/// How a collective is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Every rank gets what it needs from every rank, in one exchange.
    Direct,
    /// Each rank finishes its share of the page, then all collect the shares.
    TwoShot,
    /// Data goes around the ring of ranks.
    Ring,
    /// Partners at distances that halve or double; log2 of the ranks exchanges.
    RecursiveHalving,
    /// A binomial tree; for a barrier, dissemination: log2 of the ranks signals a rank.
    Tree,
    /// First within nodes, then between nodes, then within nodes again.
    Hierarchical,
}

impl Algorithm {
    /// Every algorithm, in the order in which tables show them.
    pub const ALL: [Self; 6] = [
        Self::Direct,
        Self::TwoShot,
        Self::Ring,
        Self::RecursiveHalving,
        Self::Tree,
        Self::Hierarchical,
    ];

    /// Name as users write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::TwoShot => "two_shot",
            Self::Ring => "ring",
            Self::RecursiveHalving => "recursive",
            Self::Tree => "tree",
            Self::Hierarchical => "hierarchical",
        }
    }

    /// Other names users may write.
    #[must_use]
    pub const fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Direct => &["one_shot", "oneshot"],
            Self::TwoShot => &["twoshot"],
            Self::Ring => &["chain"],
            Self::RecursiveHalving => &["recursive_halving", "halving", "doubling", "rhd"],
            Self::Tree => &["binomial", "dissemination"],
            Self::Hierarchical => &["hier", "node"],
        }
    }

    /// Names of all algorithms, for messages.
    pub(crate) fn known() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Whether there is a plan for `collective` on `topology`.
    #[must_use]
    pub fn supports(self, collective: Collective, topology: &Topology) -> bool {
        self.missing(collective, topology).is_none()
    }

    /// Why there is no plan, where there is none.
    #[must_use]
    pub fn missing(self, collective: Collective, topology: &Topology) -> Option<&'static str> {
        use Collective as C;
        if self == Self::Direct {
            return None;
        }
        if topology.ranks() == 1 {
            return Some("one rank only copies");
        }
        let planned = match self {
            Self::Direct => true,
            Self::TwoShot => {
                matches!(collective, C::AllReduce | C::Broadcast { .. } | C::Reduce { .. })
            }
            Self::Ring | Self::Hierarchical => matches!(
                collective,
                C::AllReduce
                    | C::Broadcast { .. }
                    | C::Reduce { .. }
                    | C::AllGather
                    | C::ReduceScatter
            ),
            Self::RecursiveHalving => {
                matches!(collective, C::AllReduce | C::AllGather | C::ReduceScatter)
            }
            Self::Tree => matches!(
                collective,
                C::AllReduce
                    | C::Broadcast { .. }
                    | C::Reduce { .. }
                    | C::Gather { .. }
                    | C::Scatter { .. }
                    | C::Barrier
            ),
        };
        if !planned {
            return Some("the algorithm gains nothing for this collective");
        }
        if self == Self::Hierarchical {
            if topology.nodes() == 1 {
                return Some("all ranks share one node");
            }
            if topology.nodes() == topology.ranks() {
                return Some("no node has two ranks");
            }
        }
        None
    }

    /// Most sources that one reduce of the plan has.
    #[must_use]
    pub fn reduce_sources(self, collective: Collective, topology: &Topology) -> u32 {
        let (ranks, nodes) = (topology.ranks(), topology.nodes());
        if !collective.reduces() || ranks == 1 {
            return 0;
        }
        let local = topology.largest_node();
        match self {
            Self::Direct | Self::TwoShot => ranks,
            Self::Ring => 2,
            // The input, a folded rank's, and what came at each level.
            Self::RecursiveHalving => 1 + ranks.ilog2() + u32::from(!ranks.is_power_of_two()),
            Self::Tree => 1 + builder::log2_ceil(ranks),
            Self::Hierarchical => match collective {
                Collective::Reduce { .. } => local + builder::log2_ceil(nodes),
                _ => local + nodes - 1,
            },
        }
    }

    /// The program of one rank; the caller has checked support, root and rank.
    pub(crate) fn program(self, collective: Collective, topology: &Topology, rank: u32) -> Program {
        let builder = Builder::new(topology, rank);
        match self {
            Self::Direct => direct::program(collective, builder),
            Self::TwoShot => two_shot::program(collective, builder),
            Self::Ring => ring::program(collective, builder),
            Self::RecursiveHalving => halving::program(collective, builder),
            Self::Tree => tree::program(collective, builder),
            Self::Hierarchical => hierarchical::program(collective, builder),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = PlanError;

    /// Takes names and aliases; case and `-` for `_` do not matter.
    fn from_str(text: &str) -> Result<Self, PlanError> {
        let name = text.to_ascii_lowercase().replace('-', "_");
        Self::ALL
            .into_iter()
            .find(|a| a.name() == name || a.aliases().contains(&name.as_str()))
            .ok_or_else(|| PlanError::UnknownAlgorithm { name: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases_are_understood_and_unique() {
        let mut seen = std::collections::HashSet::new();
        for algorithm in Algorithm::ALL {
            for name in std::iter::once(&algorithm.name()).chain(algorithm.aliases()) {
                assert_eq!(name.parse(), Ok(algorithm));
                assert!(seen.insert(*name), "{name} names two algorithms");
            }
        }
        assert_eq!("Two-Shot".parse(), Ok(Algorithm::TwoShot));
        let refused = Algorithm::from_str("magic").unwrap_err().to_string();
        assert!(refused.contains("magic") && refused.contains("recursive"), "{refused}");
    }
}
