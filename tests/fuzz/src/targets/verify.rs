//! The verifier: programs that nobody planned are refused or proven, and it always ends.

use stepccl_plan::{
    Algorithm, Collective, Place, Plan, Program, Span, Step, Targets, Topology, verify_programs,
};

use super::input::Input;

fn span(input: &mut Input<'_>) -> Span {
    Span {
        rank: small(input),
        place: input.one_of(&[Place::Input, Place::Output, Place::Staging]),
        block: small(input),
        first: small(input),
        count: small(input),
    }
}

/// A small number, or now and then a large one.
fn small(input: &mut Input<'_>) -> u32 {
    match input.u8() {
        255 => input.u32(),
        few => u32::from(few % 5),
    }
}

fn step(input: &mut Input<'_>) -> Step {
    match input.below(4) {
        0 => Step::Copy { src: span(input), dst: span(input) },
        1 => Step::Reduce {
            srcs: (0..input.below(5)).map(|_| span(input)).collect(),
            dst: span(input),
            last: input.u8() & 1 == 1,
        },
        2 => {
            let to = if input.u8() & 1 == 0 { Targets::All } else { Targets::One(small(input)) };
            Step::Signal { flag: small(input), to }
        }
        _ => Step::Wait { from: small(input), flag: small(input) },
    }
}

fn change(programs: &mut [Program], input: &mut Input<'_>) {
    let program = input.below(programs.len());
    let program = &mut programs[program];
    let at = input.below(program.steps.len().min(255) + 1);
    match input.below(6) {
        0 => program.steps.insert(at, step(input)),
        1 if at < program.steps.len() => drop(program.steps.remove(at)),
        2 if at + 1 < program.steps.len() => program.steps.swap(at, at + 1),
        3 => program.parts = small(input),
        4 => program.areas = small(input),
        5 => program.flags = small(input),
        _ => {}
    }
}

pub(crate) fn run(data: &[u8]) {
    let mut input = Input(data);
    let ranks = 1 + input.below(4) as u32;
    let nodes = 1 + input.below(ranks as usize) as u32;
    let Ok(topology) = Topology::uniform(ranks, nodes) else { return };
    let collective = input.one_of(&Collective::ALL).with_root(small(&mut input) % ranks);
    let Ok(plan) = Plan::new(collective, &topology, input.one_of(&Algorithm::ALL)) else { return };
    let mut programs: Vec<_> = (0..ranks).map(|rank| plan.program(rank)).collect();
    while !input.is_empty() {
        change(&mut programs, &mut input);
    }
    if let Err(error) = verify_programs(collective, &topology, &programs) {
        assert!(!error.to_string().is_empty());
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for collective in 0..Collective::ALL.len() as u8 {
        for algorithm in 0..Algorithm::ALL.len() as u8 {
            seeds.push(vec![3, 1, collective, 0, algorithm, 0, 1, 0, 3, 1, 0, 1, 2, 2]);
        }
    }
    seeds
}
