//! The planners: any topology, collective, size, type and speed gives a right plan or an error.

use stepccl_plan::{
    Algorithm, Collective, DType, Figures, Limits, Plan, Topology, boundary, choose, describe,
    describe_rank, verify,
};

use super::input::Input;

fn topology(input: &mut Input<'_>) -> Option<Topology> {
    let ranks = 1 + input.below(12);
    if input.u8() & 1 == 0 {
        return Topology::uniform(ranks as u32, input.u8().into()).ok();
    }
    let nodes: Vec<u32> = (0..ranks).map(|_| u32::from(input.u8() % 4)).collect();
    Topology::new(&nodes).ok()
}

fn figures(input: &mut Input<'_>) -> Figures {
    let mut figures = Figures::default();
    for figure in [
        &mut figures.local.latency_ns,
        &mut figures.local.bytes_per_second,
        &mut figures.network.latency_ns,
        &mut figures.network.bytes_per_second,
        &mut figures.copy_bytes_per_second,
        &mut figures.reduce_bytes_per_second,
        &mut figures.step_overhead_ns,
    ] {
        if input.u8() & 1 == 1 {
            *figure = f64::from_bits(input.u64());
        }
    }
    figures
}

pub(crate) fn run(data: &[u8]) {
    let mut input = Input(data);
    let Some(topology) = topology(&mut input) else { return };
    let root = u32::from(input.u8());
    let collective = input.one_of(&Collective::ALL).with_root(root);
    let algorithm = input.one_of(&Algorithm::ALL);
    if let Ok(plan) = Plan::new(collective, &topology, algorithm) {
        match verify(&plan) {
            Ok(report) => assert_eq!(report.ranks, topology.ranks()),
            Err(error) => panic!("{collective} {algorithm:?} {topology:?}: {error}"),
        }
    }
    let dtype = input.one_of(&DType::ALL);
    let count = input.u64() >> input.below(64);
    let figures = figures(&mut input);
    let limits = Limits::default();
    let Ok(count) = usize::try_from(count) else { return };
    let chosen = choose(collective, &topology, count, dtype, &figures, &limits);
    let Ok(choice) = chosen else { return };
    assert!(choice.depth >= 1 && choice.page_elements >= 1, "{choice:?}");
    let plan = Plan::new(collective, &topology, choice.algorithm);
    let plan = plan.unwrap_or_else(|error| panic!("{choice:?}: {error}"));
    let program = plan.program(0);
    let parts = program.parts;
    let edges = [0, parts / 2, parts].map(|i| boundary(i, parts, choice.page_elements, dtype));
    assert!(edges[0] == 0 && edges.is_sorted() && edges[2] == choice.page_elements, "{edges:?}");
    let text = describe(&plan, &choice) + &describe_rank(&plan, &choice, topology.ranks() - 1);
    assert!(!text.is_empty());
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for collective in 0..Collective::ALL.len() as u8 {
        for algorithm in 0..Algorithm::ALL.len() as u8 {
            let uniform = [3, 0, 2, 1, collective, algorithm, 2];
            seeds.push([&uniform[..], &1000u64.to_le_bytes(), &[0; 8]].concat());
            let mixed = [4, 1, 0, 1, 0, 2, 1, 3, collective, algorithm, 4];
            seeds.push([&mixed[..], &(1u64 << 33).to_le_bytes(), &[0; 8]].concat());
        }
    }
    seeds
}
