//! A collective, a topology and an algorithm that belong together.

use crate::{Algorithm, Collective, PlanError, Program, Topology};

/// How one collective runs on one topology. Programs are made when asked for, one rank at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    collective: Collective,
    topology: Topology,
    algorithm: Algorithm,
}

impl Plan {
    /// A plan.
    ///
    /// # Errors
    ///
    /// [`PlanError::RootOutOfRange`], [`PlanError::Unsupported`].
    pub fn new(
        collective: Collective,
        topology: &Topology,
        algorithm: Algorithm,
    ) -> Result<Self, PlanError> {
        let ranks = topology.ranks();
        if let Some(root) = collective.root()
            && root >= ranks
        {
            return Err(PlanError::RootOutOfRange { collective, root, ranks });
        }
        if let Some(reason) = algorithm.missing(collective, topology) {
            return Err(PlanError::Unsupported {
                algorithm,
                collective,
                ranks,
                nodes: topology.nodes(),
                reason,
            });
        }
        Ok(Self { collective, topology: topology.clone(), algorithm })
    }

    /// What it computes.
    #[must_use]
    pub fn collective(&self) -> Collective {
        self.collective
    }

    /// Where it runs.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// How it does it.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The program of `rank`. Every rank makes its own; none needs those of others.
    ///
    /// # Panics
    ///
    /// Where `rank` is not a rank of the topology.
    #[must_use]
    pub fn program(&self, rank: u32) -> Program {
        assert!(rank < self.topology.ranks(), "rank {rank} of {}", self.topology.ranks());
        self.algorithm.program(self.collective, &self.topology, rank)
    }
}
