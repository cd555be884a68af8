//! Which ranks share a node.

use std::collections::HashMap;
use std::sync::Arc;

use crate::PlanError;

/// The ranks of a communicator and the node each is on. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    inner: Arc<Inner>,
}

#[derive(Debug, PartialEq, Eq)]
struct Inner {
    node_of: Vec<u32>,
    local_index: Vec<u32>,
    members: Vec<Vec<u32>>,
    largest: u32,
    smallest: u32,
}

impl Topology {
    /// Most ranks of a communicator.
    pub const MAX_RANKS: u32 = 1 << 16;

    /// A topology from the node of each rank. Only equality of the numbers matters: nodes are
    /// renumbered in the order in which they first appear.
    ///
    /// # Errors
    ///
    /// [`PlanError::NoRanks`], [`PlanError::TooManyRanks`].
    pub fn new(node_of: &[u32]) -> Result<Self, PlanError> {
        let ranks = Self::checked_ranks(node_of.len())?;
        let mut number = HashMap::new();
        let mut members: Vec<Vec<u32>> = Vec::new();
        let mut nodes = Vec::with_capacity(node_of.len());
        let mut local_index = Vec::with_capacity(node_of.len());
        for (rank, name) in (0..ranks).zip(node_of) {
            let node = *number.entry(*name).or_insert_with(|| {
                members.push(Vec::new());
                members.len() - 1
            });
            nodes.push(node as u32);
            local_index.push(members[node].len() as u32);
            members[node].push(rank);
        }
        Ok(Self::from_parts(nodes, local_index, members))
    }

    /// `ranks` ranks in order on `nodes` nodes; the first nodes have one rank more where the
    /// division leaves a rest.
    ///
    /// # Errors
    ///
    /// [`PlanError::NoRanks`], [`PlanError::TooManyRanks`], and [`PlanError::BadNodes`] where a
    /// node would be empty.
    pub fn uniform(ranks: u32, nodes: u32) -> Result<Self, PlanError> {
        Self::checked_ranks(ranks as usize)?;
        if nodes == 0 || nodes > ranks {
            return Err(PlanError::BadNodes { nodes, ranks });
        }
        let mut members = Vec::with_capacity(nodes as usize);
        let mut node_of = Vec::with_capacity(ranks as usize);
        let mut local_index = Vec::with_capacity(ranks as usize);
        let mut first = 0;
        for node in 0..nodes {
            let size = ranks / nodes + u32::from(node < ranks % nodes);
            members.push((first..first + size).collect());
            node_of.extend((0..size).map(|_| node));
            local_index.extend(0..size);
            first += size;
        }
        Ok(Self::from_parts(node_of, local_index, members))
    }

    /// Number of ranks, at least 1.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.inner.node_of.len() as u32
    }

    /// Number of nodes, at least 1.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.inner.members.len() as u32
    }

    /// Node of `rank`.
    ///
    /// # Panics
    ///
    /// Where `rank` is not below [`ranks`](Self::ranks).
    #[must_use]
    pub fn node_of(&self, rank: u32) -> u32 {
        self.inner.node_of[rank as usize]
    }

    /// Position of `rank` among the ranks of its node.
    ///
    /// # Panics
    ///
    /// Where `rank` is not below [`ranks`](Self::ranks).
    #[must_use]
    pub fn local_index(&self, rank: u32) -> u32 {
        self.inner.local_index[rank as usize]
    }

    /// Ranks of `node`, in order.
    ///
    /// # Panics
    ///
    /// Where `node` is not below [`nodes`](Self::nodes).
    #[must_use]
    pub fn members(&self, node: u32) -> &[u32] {
        &self.inner.members[node as usize]
    }

    /// Whether two ranks share a node.
    #[must_use]
    pub fn same_node(&self, a: u32, b: u32) -> bool {
        self.inner.node_of[a as usize] == self.inner.node_of[b as usize]
    }

    /// Ranks of the node that has most.
    #[must_use]
    pub fn largest_node(&self) -> u32 {
        self.inner.largest
    }

    /// Ranks of the node that has fewest.
    #[must_use]
    pub fn smallest_node(&self) -> u32 {
        self.inner.smallest
    }

    fn checked_ranks(ranks: usize) -> Result<u32, PlanError> {
        match u32::try_from(ranks) {
            Ok(0) => Err(PlanError::NoRanks),
            Ok(few) if few <= Self::MAX_RANKS => Ok(few),
            _ => Err(PlanError::TooManyRanks { ranks, limit: Self::MAX_RANKS }),
        }
    }

    fn from_parts(node_of: Vec<u32>, local_index: Vec<u32>, members: Vec<Vec<u32>>) -> Self {
        let sizes = members.iter().map(|m| m.len() as u32);
        let largest = sizes.clone().max().unwrap_or(1);
        let smallest = sizes.min().unwrap_or(1);
        Self { inner: Arc::new(Inner { node_of, local_index, members, largest, smallest }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uneven_division_gives_the_rest_to_the_first_nodes() {
        let topology = Topology::uniform(10, 3).unwrap();
        assert_eq!(topology.members(0), [0, 1, 2, 3]);
        assert_eq!(topology.members(2), [7, 8, 9]);
        assert_eq!((topology.largest_node(), topology.smallest_node()), (4, 3));
        assert_eq!((topology.node_of(6), topology.local_index(6)), (1, 2));
    }

    #[test]
    fn nodes_are_numbered_as_they_appear() {
        let topology = Topology::new(&[7, 3, 7, 9]).unwrap();
        assert_eq!(topology.nodes(), 3);
        assert_eq!(topology.members(0), [0, 2]);
        assert!(topology.same_node(0, 2) && !topology.same_node(1, 3));
    }

    #[test]
    fn bad_sizes_are_refused_with_their_values() {
        assert_eq!(Topology::new(&[]), Err(PlanError::NoRanks));
        assert_eq!(Topology::uniform(0, 1), Err(PlanError::NoRanks));
        assert_eq!(Topology::uniform(4, 0), Err(PlanError::BadNodes { nodes: 0, ranks: 4 }));
        assert_eq!(Topology::uniform(4, 5), Err(PlanError::BadNodes { nodes: 5, ranks: 4 }));
        assert!(matches!(
            Topology::uniform(Topology::MAX_RANKS + 1, 1),
            Err(PlanError::TooManyRanks { .. })
        ));
    }
}
