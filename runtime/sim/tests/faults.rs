//! Lost, slow and late: the run ends and says why.

mod common;
#[path = "../../plan/tests/common/mod.rs"]
#[expect(dead_code, reason = "these tests need no random topologies")]
mod plans;

use std::time::Duration;

use stepccl_plan::{Algorithm, Collective, Figures, Plan, Program, ReduceOp, Topology};
use stepccl_sim::{Delay, Faults, Loss, Order, Outcome, Reason, Scenario, run};

fn simulate(plan: &Plan, faults: Faults) -> Outcome<i64> {
    let (collective, topology) = (plan.collective(), plan.topology());
    let ranks = topology.ranks();
    let programs: Vec<Program> = (0..ranks).map(|rank| plan.program(rank)).collect();
    let inputs = common::inputs(collective, ranks, 256, u64::cast_signed);
    let outcome = run(
        &Scenario {
            collective,
            topology,
            programs: &programs,
            op: ReduceOp::Sum,
            count: 256,
            page: 64,
            depth: 2,
            in_place: false,
            figures: Figures::default(),
            order: Order::Clock,
            faults,
        },
        &inputs,
    );
    if outcome.blocked.is_empty() {
        assert_eq!(outcome.outputs, common::outputs(collective, ReduceOp::Sum, 256, &inputs));
    }
    outcome
}

#[test]
fn a_lost_rank_is_at_the_end_of_every_chain_of_waits() {
    let topology = Topology::uniform(6, 2).unwrap();
    for plan in plans::plans(&topology, &[2]) {
        let steps = plan.program(4).steps.len() as u64;
        for after_steps in [0, 1, steps / 2, steps, 2 * steps + 1] {
            let lost = vec![Loss { rank: 4, after_steps }];
            let outcome = simulate(&plan, Faults { lost, ..Faults::default() });
            let blocked = &outcome.blocked;
            let of = |rank| blocked.iter().find(|b| b.rank == rank);
            for start in blocked {
                let mut at = start;
                for _ in 0..blocked.len() {
                    match at.reason {
                        Reason::Lost => break,
                        Reason::Flag { from, .. } | Reason::Slot { from } => {
                            at = of(from).unwrap_or_else(|| panic!("{at}: {from} is done"));
                        }
                    }
                }
                assert_eq!((at.rank, at.reason), (4, Reason::Lost), "{}", plans::name(&plan));
            }
        }
    }
}

#[test]
fn a_slow_rank_and_a_late_signal_cost_time_only() {
    let topology = Topology::uniform(6, 2).unwrap();
    for plan in plans::plans(&topology, &[2]) {
        let usual = simulate(&plan, Faults::default());
        assert!(usual.blocked.is_empty());
        let slow = simulate(&plan, Faults { slow: vec![(2, 50.0)], ..Faults::default() });
        assert!(slow.blocked.is_empty() && slow.elapsed > usual.elapsed);
    }
    let plan = Plan::new(Collective::AllReduce, &topology, Algorithm::Direct).unwrap();
    let late = Delay { rank: 3, flag: 0, round: 1, by_ns: 1e6 };
    let outcome = simulate(&plan, Faults { delayed: vec![late], ..Faults::default() });
    assert!(outcome.blocked.is_empty());
    assert!(outcome.elapsed > Duration::from_millis(1), "{:?}", outcome.elapsed);
    assert!(outcome.elapsed < Duration::from_micros(1100), "{:?}", outcome.elapsed);
}
