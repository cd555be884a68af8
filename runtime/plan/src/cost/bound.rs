//! What no plan can beat.

use std::time::Duration;

use super::figures::Figures;
use crate::{Collective, Topology};

/// Time below which no plan can be, for blocks of `bytes` bytes: the largest of one signal's
/// latency, the bytes the network must carry, the contributions that must be added, and the bytes
/// that must be copied to the outputs.
#[must_use]
pub fn lower_bound(
    collective: Collective,
    topology: &Topology,
    bytes: u64,
    figures: &Figures,
) -> Duration {
    let (ranks, nodes) = (f64::from(topology.ranks()), f64::from(topology.nodes()));
    let block = bytes as f64;
    let copy = 1e9 / figures.copy_bytes_per_second;
    if topology.ranks() == 1 {
        let copied = if collective == Collective::Barrier { 0.0 } else { block * copy };
        return nanoseconds(copied);
    }
    // Pairs of ranks on different nodes.
    let strangers = || {
        let size = |node| topology.members(node).len() as f64;
        (0..topology.nodes()).map(|node| size(node) * (ranks - size(node))).sum::<f64>()
    };
    // Blocks over the network and blocks added, of an average rank; blocks copied by some rank.
    let (carried, added, copied) = match collective {
        Collective::AllReduce => (2.0 * (nodes - 1.0) / ranks, 1.0, (ranks - 1.0) / ranks),
        Collective::Broadcast { .. } => ((nodes - 1.0) / ranks, 0.0, 1.0),
        Collective::Reduce { .. } => ((nodes - 1.0) / ranks, 1.0, 0.0),
        Collective::AllGather => (nodes - 1.0, 0.0, ranks - 1.0),
        Collective::ReduceScatter => (nodes - 1.0, ranks, 0.0),
        Collective::AllToAll => (strangers() / ranks, 0.0, ranks - 1.0),
        Collective::Gather { .. } => (if nodes > 1.0 { 1.0 } else { 0.0 }, 0.0, ranks - 1.0),
        Collective::Scatter { root } => {
            let node = topology.members(topology.node_of(root)).len() as f64;
            ((ranks - node) / node, 0.0, 1.0)
        }
        Collective::Barrier => (0.0, 0.0, 0.0),
    };
    let link = if topology.nodes() == 1 { figures.local } else { figures.network };
    let worst = [
        link.latency_ns,
        carried * block * 1e9 / figures.network.bytes_per_second,
        added * block * 1e9 / figures.reduce_bytes_per_second,
        copied * block * copy,
    ];
    nanoseconds(worst.into_iter().fold(0.0, f64::max))
}

/// A time of the model as a duration, rounded down to nanoseconds.
pub(super) fn nanoseconds(ns: f64) -> Duration {
    Duration::from_nanos(ns as u64)
}
