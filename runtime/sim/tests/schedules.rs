//! Several rounds in flight, in any order, compute what one thread computes.

mod common;
#[path = "../../plan/tests/common/mod.rs"]
mod plans;

use proptest::prelude::*;
use stepccl_plan::{Algorithm, Collective, Figures, Plan, Program, ReduceOp, Topology};
use stepccl_sim::{Faults, Order, Scenario, run};

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_gives_the_plain_result(
        topology in plans::topology(24),
        root in any::<u32>(),
        count in 0_usize..90,
        page in 1_usize..40,
        depth in 1_u32..=4,
        op in prop::sample::select(ReduceOp::ALL.to_vec()),
        seed in any::<u64>(),
    ) {
        let ranks = topology.ranks();
        for plan in plans::plans(&topology, &[root % ranks]) {
            let programs: Vec<Program> = (0..ranks).map(|rank| plan.program(rank)).collect();
            let collective = plan.collective();
            let inputs = common::inputs(collective, ranks, count, |n| {
                // Spread over all of i64, so that sums wrap.
                (n ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15).cast_signed()
            });
            let wanted = common::outputs(collective, op, count, &inputs);
            for in_place in [false, true] {
                let outcome = run(&Scenario {
                    collective,
                    topology: &topology,
                    programs: &programs,
                    op,
                    count,
                    page,
                    depth,
                    in_place,
                    figures: Figures::default(),
                    order: Order::Random(seed),
                    faults: Faults::default(),
                }, &inputs);
                prop_assert_eq!(&outcome.blocked, &[], "{}", plans::name(&plan));
                prop_assert!(outcome.outputs == wanted, "{} in place {in_place}", plans::name(&plan));
            }
        }
    }
}

/// Exchanges in one step and in two add in order of rank, as a plain loop does.
#[test]
fn direct_and_two_shot_give_the_bits_of_a_plain_loop() {
    for (ranks, nodes) in [(2, 1), (7, 1), (8, 3)] {
        let topology = Topology::uniform(ranks, nodes).unwrap();
        for collective in [Collective::AllReduce, Collective::Reduce { root: 1 }] {
            let inputs = common::inputs(collective, ranks, 100, |n| 1.0 / n as f64);
            let wanted = common::outputs(collective, ReduceOp::Avg, 100, &inputs);
            for algorithm in [Algorithm::Direct, Algorithm::TwoShot] {
                let plan = Plan::new(collective, &topology, algorithm).unwrap();
                let programs: Vec<Program> = (0..ranks).map(|rank| plan.program(rank)).collect();
                let outcome = run(
                    &Scenario {
                        collective,
                        topology: &topology,
                        programs: &programs,
                        op: ReduceOp::Avg,
                        count: 100,
                        page: 64,
                        depth: 2,
                        in_place: false,
                        figures: Figures::default(),
                        order: Order::Clock,
                        faults: Faults::default(),
                    },
                    &inputs,
                );
                assert_eq!(outcome.outputs, wanted, "{}", plans::name(&plan));
            }
        }
    }
}
