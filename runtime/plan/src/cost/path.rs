//! The critical path of a round in closed form, for many ranks.

use crate::{Algorithm, Collective, Plan, Topology};

/// Ranks that work one after the other, each so many times over, and the signals between them.
pub(super) struct Path {
    pub ranks: Vec<(u32, u32)>,
    pub local_hops: u32,
    pub network_hops: u32,
}

pub(super) fn of(plan: &Plan) -> Path {
    let topology = plan.topology();
    let ranks = topology.ranks();
    let root = plan.collective().root();
    // Where all ranks do alike, one that has most to do stands for all: the first rank is on the
    // largest node and is folded into.
    let alike = |hops| Path::between(topology, vec![(0, 1)], hops, hops);
    match plan.algorithm() {
        Algorithm::Direct => match root {
            Some(root) => {
                let other = u32::from(root == 0);
                Path::between(topology, vec![(root, 1), (other, u32::from(ranks > 1))], 1, 1)
            }
            None => alike(1),
        },
        Algorithm::TwoShot => match root {
            Some(root) => {
                let other = u32::from(root == 0);
                Path::between(topology, vec![(root, 1), (other, 1)], 2, 2)
            }
            None => alike(2),
        },
        Algorithm::Ring => ring(plan.collective(), topology),
        Algorithm::RecursiveHalving => recursive(plan.collective(), topology),
        Algorithm::Tree => tree(plan.collective(), topology),
        Algorithm::Hierarchical => match plan.collective() {
            Collective::Broadcast { root } | Collective::Reduce { root } => leaders(topology, root),
            Collective::AllReduce => Path { ranks: vec![(0, 1)], local_hops: 2, network_hops: 2 },
            _ => Path { ranks: vec![(0, 1)], local_hops: 1, network_hops: 1 },
        },
    }
}

impl Path {
    /// A path of so many hops, all within the node or all between nodes.
    fn between(topology: &Topology, ranks: Vec<(u32, u32)>, local: u32, network: u32) -> Self {
        if topology.nodes() == 1 {
            Self { ranks, local_hops: local, network_hops: 0 }
        } else {
            Self { ranks, local_hops: 0, network_hops: network }
        }
    }
}

fn ring(collective: Collective, topology: &Topology) -> Path {
    let ranks = topology.ranks();
    let crossings = (0..ranks).filter(|r| !topology.same_node(*r, (r + 1) % ranks)).count() as u32;
    let (path, rounds) = match collective {
        // A chain: everyone works in turn.
        Collective::Broadcast { root } | Collective::Reduce { root } => {
            let first = (root + ranks - 1) % ranks;
            (vec![(root, 1), ((root + ranks / 2) % ranks, ranks - 2), (first, 1)], 1)
        }
        Collective::AllReduce => (vec![(0, 1)], 2),
        _ => (vec![(0, 1)], 1),
    };
    let network_hops = rounds * crossings.min(ranks - 1);
    Path { ranks: path, local_hops: rounds * (ranks - 1) - network_hops, network_hops }
}

fn recursive(collective: Collective, topology: &Topology) -> Path {
    let ranks = topology.ranks();
    let players = 1 << ranks.ilog2();
    let pairs = ranks - players;
    let rank_of = |player: u32| if player < pairs { 2 * player } else { player + pairs };
    // All go in step, so one pair on two nodes holds up a level for all.
    let mut hops = (0, 0);
    for level in 0..ranks.ilog2() {
        let pair = |player: u32| (rank_of(player), rank_of(player ^ (1 << level)));
        let local = (0..players).map(pair).all(|(a, b)| topology.same_node(a, b));
        if local { hops.0 += 1 } else { hops.1 += 1 }
    }
    let sweeps = if collective == Collective::AllReduce { 2 } else { 1 };
    let folds = 2 * u32::from(pairs > 0);
    // The folded rank works before and after its partner.
    let folded = u32::from(pairs > 0);
    Path {
        ranks: vec![(0, 1), (1, folded)],
        local_hops: sweeps * hops.0 + folds,
        network_hops: sweeps * hops.1,
    }
}

fn tree(collective: Collective, topology: &Topology) -> Path {
    let ranks = topology.ranks();
    let root = collective.root().unwrap_or(0);
    let levels = ranks.next_power_of_two().trailing_zeros();
    if collective == Collective::Barrier {
        let within = |level: &u32| {
            (0..ranks).all(|rank| topology.same_node(rank, (rank + (1 << level)) % ranks))
        };
        let local = (0..levels).filter(within).count() as u32;
        return Path { ranks: vec![(0, 1)], local_hops: local, network_hops: levels - local };
    }
    // The way to the root with most hops between nodes, then most hops.
    let rank_of = |number: u32| (number + root) % ranks;
    let way = |number: u32| std::iter::successors(Some(number), |n| (*n != 0).then(|| n & (n - 1)));
    let hops = |number: u32| {
        let pairs = way(number).zip(way(number).skip(1));
        pairs.fold((0, 0), |(network, local), (child, parent)| {
            let near = topology.same_node(rank_of(child), rank_of(parent));
            (network + u32::from(!near), local + u32::from(near))
        })
    };
    let last = (0..ranks).max_by_key(|number| hops(*number)).unwrap_or(0);
    let path = way(last).map(|number| (rank_of(number), 1)).collect();
    let hops = hops(last);
    let sweeps = if collective == Collective::AllReduce { 2 } else { 1 };
    Path { ranks: path, local_hops: sweeps * hops.1, network_hops: sweeps * hops.0 }
}

fn leaders(topology: &Topology, root: u32) -> Path {
    let nodes = topology.nodes();
    let first = topology.node_of(root);
    let mut path = vec![(root, 1)];
    let mut number = 0;
    for level in (0..nodes.next_power_of_two().trailing_zeros()).rev() {
        if number + (1 << level) < nodes {
            number += 1 << level;
            path.push((topology.members((number + first) % nodes)[0], 1));
        }
    }
    let network_hops = path.len() as u32 - 1;
    let last = topology.members((number + first) % nodes);
    path.extend(last.last().filter(|_| last.len() > 1).map(|rank| (*rank, 1)));
    Path { ranks: path, local_hops: 1, network_hops }
}
