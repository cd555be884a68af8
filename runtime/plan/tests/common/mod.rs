//! What the tests share: topologies and the plans that exist on them.

use proptest::prelude::*;
use stepccl_plan::{Algorithm, Collective, Plan, Topology};

/// Every plan for `topology`, rooted ones for each of `roots`.
pub fn plans(topology: &Topology, roots: &[u32]) -> Vec<Plan> {
    let mut plans = Vec::new();
    for collective in Collective::ALL {
        let roots = if collective.root().is_some() { roots } else { &[0] };
        for root in roots {
            let collective = collective.with_root(*root);
            for algorithm in Algorithm::ALL {
                if algorithm.supports(collective, topology) {
                    plans.push(Plan::new(collective, topology, algorithm).unwrap());
                }
            }
        }
    }
    plans
}

/// What a failing test prints.
pub fn name(plan: &Plan) -> String {
    let topology = plan.topology();
    let nodes: Vec<_> = (0..topology.nodes()).map(|n| topology.members(n).len()).collect();
    format!("{:?} {} nodes {:?}", plan.collective(), plan.algorithm(), nodes)
}

/// Topologies of at most `most` ranks: few nodes or many, equal or not, in order or mixed.
pub fn topology(most: u32) -> impl Strategy<Value = Topology> {
    let ranks = prop_oneof![6 => 1..=most.min(17), 1 => 1..=most];
    let uniform = (ranks, 1_u32..=5)
        .prop_map(|(ranks, nodes)| Topology::uniform(ranks, nodes.min(ranks)).unwrap());
    let mixed = prop::collection::vec(0_u32..4, 1..=most.min(14) as usize)
        .prop_map(|nodes| Topology::new(&nodes).unwrap());
    prop_oneof![uniform, mixed]
}
