//! Every plan is proven right.

mod common;

use proptest::prelude::*;
use stepccl_plan::{Algorithm, Collective, Plan, Report, Topology, verify};

fn prove(topology: &Topology, roots: &[u32]) {
    for plan in common::plans(topology, roots) {
        prove_one(plan.collective(), topology, plan.algorithm());
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

fn prove_one(collective: Collective, topology: &Topology, algorithm: Algorithm) -> Report {
    let plan = Plan::new(collective, topology, algorithm).unwrap();
    let report = verify(&plan).unwrap_or_else(|e| panic!("{}: {e}", common::name(&plan)));
    assert!(report.largest_reduce <= algorithm.reduce_sources(collective, topology));
    report
}

/// Plans whose steps grow slowly are proven at 1,024 ranks.
#[test]
fn plans_of_many_ranks_are_right() {
    use Collective::{AllReduce, Barrier, Broadcast, Gather, Reduce, Scatter};
    for (ranks, nodes) in [(1024, 1), (1024, 128), (1000, 37)] {
        let topology = Topology::uniform(ranks, nodes).unwrap();
        for (collective, algorithm) in [
            (AllReduce, Algorithm::RecursiveHalving),
            (AllReduce, Algorithm::Tree),
            (AllReduce, Algorithm::Hierarchical),
            (Broadcast { root: 700 }, Algorithm::Direct),
            (Broadcast { root: 700 }, Algorithm::Tree),
            (Broadcast { root: 700 }, Algorithm::Ring),
            (Broadcast { root: 700 }, Algorithm::Hierarchical),
            (Reduce { root: 999 }, Algorithm::Direct),
            (Reduce { root: 999 }, Algorithm::Tree),
            (Reduce { root: 999 }, Algorithm::Ring),
            (Reduce { root: 999 }, Algorithm::Hierarchical),
            (Gather { root: 3 }, Algorithm::Direct),
            (Gather { root: 3 }, Algorithm::Tree),
            (Scatter { root: 3 }, Algorithm::Direct),
            (Scatter { root: 3 }, Algorithm::Tree),
            (Barrier, Algorithm::Tree),
        ] {
            if algorithm.supports(collective, &topology) {
                let report = prove_one(collective, &topology, algorithm);
                assert_eq!(report.ranks, ranks);
            }
        }
    }
}

/// Plans in which every rank talks to every other have a million steps and more: at 1,024 ranks
/// the commonest, the others at 160; `every_plan_of_1024_ranks_is_right` has them all.
#[test]
fn plans_of_many_steps_are_right() {
    let topology = Topology::uniform(1024, 1).unwrap();
    assert_eq!(prove_one(Collective::AllReduce, &topology, Algorithm::TwoShot).hops, 2);
    assert_eq!(prove_one(Collective::Barrier, &topology, Algorithm::Direct).hops, 1);
    for nodes in [1, 20] {
        prove(&Topology::uniform(160, nodes).unwrap(), &[77]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plans_of_any_topology_are_right(topology in common::topology(80), root in any::<u32>()) {
        prove(&topology, &[root % topology.ranks()]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// One plan for each topology, of those whose steps grow slowly.
    #[test]
    fn plans_of_any_number_of_ranks_are_right(
        (ranks, nodes) in (1_u32..=1024).prop_flat_map(|ranks| (Just(ranks), 1..=ranks.min(200))),
        root in any::<u32>(),
        which in any::<prop::sample::Index>(),
    ) {
        let topology = Topology::uniform(ranks, nodes).unwrap();
        let slow = |plan: &Plan| match (plan.collective(), plan.algorithm()) {
            (Collective::AllReduce, Algorithm::RecursiveHalving | Algorithm::Tree) => true,
            (Collective::Barrier, Algorithm::Direct) => false,
            (collective, algorithm) => {
                (collective.root().is_some() || collective == Collective::Barrier)
                    && algorithm != Algorithm::TwoShot
            }
        };
        let mut plans = common::plans(&topology, &[root % ranks]);
        plans.retain(slow);
        prop_assume!(!plans.is_empty());
        let plan = which.get(&plans[..]);
        prove_one(plan.collective(), &topology, plan.algorithm());
    }
}

/// All that there are, at the largest size that is claimed.
#[test]
#[ignore = "a minute and a half in release mode; scripts/test runs it"]
fn every_plan_of_1024_ranks_is_right() {
    for nodes in [1, 128] {
        let topology = Topology::uniform(1024, nodes).unwrap();
        for plan in common::plans(&topology, &[700]) {
            let report = prove_one(plan.collective(), &topology, plan.algorithm());
            assert_eq!(report.ranks, 1024);
        }
    }
}
