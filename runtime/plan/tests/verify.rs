//! Every plan is proven right.

mod common;

use proptest::prelude::*;
use stepccl_plan::{Algorithm, Collective, Plan, Topology, verify};

fn prove(topology: &Topology, roots: &[u32]) {
    for plan in common::plans(topology, roots) {
        if let Err(error) = verify(&plan) {
            panic!("{}: {error}", common::name(&plan));
        }
    }
}

#[test]
fn every_plan_of_few_ranks_is_right_for_every_root() {
    for ranks in 1..=9 {
        for nodes in 1..=ranks {
            let topology = Topology::uniform(ranks, nodes).unwrap();
            prove(&topology, &(0..ranks).collect::<Vec<_>>());
        }
    }
}

/// At 1,024 ranks every plan but those whose blocks go from all to all in one exchange, which
/// have a million blocks and more; these at 256.
#[test]
fn plans_of_many_ranks_are_right() {
    for (ranks, nodes) in [(1024, 1), (1024, 128), (1000, 37)] {
        let topology = Topology::uniform(ranks, nodes).unwrap();
        for (collective, algorithm) in [
            (Collective::AllReduce, Algorithm::TwoShot),
            (Collective::AllReduce, Algorithm::RecursiveHalving),
            (Collective::AllReduce, Algorithm::Tree),
            (Collective::AllReduce, Algorithm::Hierarchical),
            (Collective::Broadcast { root: 700 }, Algorithm::Tree),
            (Collective::Broadcast { root: 700 }, Algorithm::Ring),
            (Collective::Broadcast { root: 700 }, Algorithm::Hierarchical),
            (Collective::Reduce { root: 999 }, Algorithm::Tree),
            (Collective::Reduce { root: 999 }, Algorithm::Hierarchical),
            (Collective::Gather { root: 3 }, Algorithm::Tree),
            (Collective::Scatter { root: 3 }, Algorithm::Direct),
            (Collective::Barrier, Algorithm::Tree),
            (Collective::Barrier, Algorithm::Direct),
        ] {
            if algorithm.supports(collective, &topology) {
                let start = std::time::Instant::now();
                let plan = Plan::new(collective, &topology, algorithm).unwrap();
                let r = verify(&plan).unwrap_or_else(|e| panic!("{}: {e}", common::name(&plan)));
                eprintln!("{:?} {r:?} {}", start.elapsed(), common::name(&plan));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn plans_of_any_topology_are_right(topology in common::topology(80), root in any::<u32>()) {
        prove(&topology, &[root % topology.ranks()]);
    }
}
