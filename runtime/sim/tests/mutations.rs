//! A plan with a mistake is refused; one that passes although it was changed computes the same.

mod common;
#[path = "../../plan/tests/common/mod.rs"]
mod plans;

use proptest::prelude::*;
use stepccl_plan::{Figures, Plan, Program, ReduceOp, Step, Targets, Topology, verify_programs};
use stepccl_sim::{Faults, Order, Scenario, run};

fn programs(plan: &Plan) -> Vec<Program> {
    (0..plan.topology().ranks()).map(|rank| plan.program(rank)).collect()
}

/// Whether the programs compute the right thing in some random orders, in place and not.
fn works(plan: &Plan, programs: &[Program]) -> bool {
    let (collective, topology) = (plan.collective(), plan.topology());
    let (ranks, count, op) = (topology.ranks(), 70, ReduceOp::Avg);
    let inputs = common::inputs(collective, ranks, count, |n| {
        n.wrapping_mul(0x9E37_79B9_7F4A).cast_signed()
    });
    let wanted = common::outputs(collective, op, count, &inputs);
    (0..6).all(|seed| {
        let outcome = run(
            &Scenario {
                collective,
                topology,
                programs,
                op,
                count,
                page: 29,
                depth: 1 + seed as u32 % 3,
                in_place: seed % 2 == 1,
                figures: Figures::default(),
                order: Order::Random(seed),
                faults: Faults::default(),
            },
            &inputs,
        );
        outcome.blocked.is_empty() && outcome.outputs == wanted
    })
}

#[test]
fn no_step_can_be_left_out() {
    for (ranks, nodes) in [(2, 1), (3, 1), (5, 1), (4, 2), (5, 3), (3, 3)] {
        let topology = Topology::uniform(ranks, nodes).unwrap();
        for plan in plans::plans(&topology, &[0, ranks - 1]) {
            let whole = programs(&plan);
            for rank in 0..ranks as usize {
                for step in 0..whole[rank].steps.len() {
                    let mut changed = whole.clone();
                    let gone = changed[rank].steps.remove(step);
                    let verdict = verify_programs(plan.collective(), &topology, &changed);
                    let name = plans::name(&plan);
                    assert!(verdict.is_err(), "{name}: rank {rank} without step {step}, {gone:?}");
                }
            }
        }
    }
}

#[test]
fn no_step_can_be_done_twice_unseen() {
    for (ranks, nodes) in [(2, 1), (5, 1), (5, 2)] {
        let topology = Topology::uniform(ranks, nodes).unwrap();
        for plan in plans::plans(&topology, &[1]) {
            let whole = programs(&plan);
            for rank in 0..ranks as usize {
                for step in 0..whole[rank].steps.len() {
                    let mut changed = whole.clone();
                    let again = changed[rank].steps[step].clone();
                    changed[rank].steps.push(again);
                    let verdict = verify_programs(plan.collective(), &topology, &changed);
                    assert!(verdict.is_err(), "{}: rank {rank} step {step}", plans::name(&plan));
                }
            }
        }
    }
}

/// A random change of one step.
fn change(programs: &mut [Program], pick: [u32; 5]) -> String {
    let rank = pick[0] as usize % programs.len();
    let ranks = programs.len() as u32;
    let (parts, areas, flags) = (programs[0].parts, programs[0].areas, programs[0].flags);
    let steps = &mut programs[rank].steps;
    if steps.is_empty() {
        return "nothing to change".into();
    }
    let step = pick[1] as usize % steps.len();
    let other = pick[2] as usize % steps.len();
    let value = pick[3];
    let text = format!("rank {rank} step {step} {:?}, change {:?}", steps[step], &pick[2..]);
    match (pick[4] % 6, &mut steps[step]) {
        (0, _) => steps.swap(step, other),
        (1, _) => {
            let moved = steps.remove(step);
            steps.insert(other.min(steps.len()), moved);
        }
        (2 | 3, Step::Copy { src, dst }) => {
            let span = if pick[2].is_multiple_of(2) { src } else { dst };
            match pick[4] % 4 {
                0 => span.block = value % areas.max(1),
                1 => span.rank = value % ranks,
                2 => span.first = value % parts,
                _ => span.count = 1 + value % parts,
            }
        }
        (_, Step::Copy { src, .. }) => src.block = value % areas.max(ranks),
        (2 | 3, Step::Reduce { srcs, .. }) => {
            let index = pick[2] as usize % srcs.len();
            match value % 3 {
                0 => {
                    srcs.remove(index);
                }
                1 => srcs.push(srcs[index]),
                _ => srcs[index].block = pick[3] % areas.max(1),
            }
        }
        (_, Step::Reduce { last, .. }) => *last = !*last,
        (n, Step::Signal { flag, to }) => match n {
            2 | 3 => *flag = value % flags,
            4 => *to = Targets::One(value % ranks),
            _ => *to = Targets::All,
        },
        (n, Step::Wait { from, flag }) => match n {
            2 | 3 => *flag = value % flags,
            _ => *from = value % ranks,
        },
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_passes_works(
        topology in plans::topology(10),
        root in any::<u32>(),
        which in any::<prop::sample::Index>(),
        picks in prop::collection::vec(prop::array::uniform5(any::<u32>()), 8),
    ) {
        let plans = plans::plans(&topology, &[root % topology.ranks()]);
        let plan = which.get(&plans);
        for pick in picks {
            let mut changed = programs(plan);
            let text = change(&mut changed, pick);
            if verify_programs(plan.collective(), &topology, &changed).is_ok() {
                prop_assert!(works(plan, &changed), "{}: {text}", plans::name(plan));
            }
        }
    }
}
