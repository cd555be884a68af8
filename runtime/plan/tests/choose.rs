//! The cost model's choices.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use stepccl_plan::{
    Algorithm, Collective, DType, Figures, GRAIN_BYTES, Limits, Plan, PlanError, Topology, Verdict,
    choose, describe,
};

fn node(ranks: u32) -> Topology {
    Topology::uniform(ranks, 1).unwrap()
}

fn choice(collective: Collective, topology: &Topology, count: usize) -> stepccl_plan::Choice {
    let (figures, limits) = (Figures::default(), Limits::default());
    choose(collective, topology, count, DType::F32, &figures, &limits).unwrap()
}

#[test]
fn short_messages_take_one_exchange_and_long_ones_share_the_work() {
    let topology = node(8);
    assert_eq!(choice(Collective::AllReduce, &topology, 2).algorithm, Algorithm::Direct);
    let long = choice(Collective::AllReduce, &topology, 64 << 20);
    assert_eq!(long.algorithm, Algorithm::TwoShot);
    assert!(long.rounds > 1 && long.staging_bytes <= 8 << 20);
}

#[test]
fn between_nodes_long_messages_reduce_within_nodes_first() {
    let topology = Topology::uniform(64, 8).unwrap();
    let long = choice(Collective::AllReduce, &topology, 64 << 20);
    assert_eq!(long.algorithm, Algorithm::Hierarchical);
}

#[test]
fn nothing_to_move_takes_no_round_and_a_barrier_one() {
    assert_eq!(choice(Collective::AllReduce, &node(4), 0).rounds, 0);
    assert_eq!(choice(Collective::Barrier, &node(4), 0).rounds, 1);
    assert_eq!(choice(Collective::Barrier, &node(1), 7).rounds, 1);
}

#[test]
fn what_does_not_fit_is_refused_with_the_reason_of_each() {
    let limits = Limits { staging_bytes: 100, ..Limits::default() };
    let figures = Figures::default();
    let refused =
        choose(Collective::AllToAll, &node(8), 1000, DType::F32, &figures, &limits).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("direct: needs at least 512 bytes of staging; there are 100"), "{text}");

    let forced = Limits { algorithm: Some(Algorithm::Ring), ..Limits::default() };
    let refused = choose(Collective::AllToAll, &node(8), 1, DType::U8, &figures, &forced);
    assert!(matches!(refused, Err(PlanError::Unsupported { .. })), "{refused:?}");
    let few = Limits { flags: 3, reduce_sources: 4, ..Limits::default() };
    let chosen = choose(Collective::AllReduce, &node(8), 1, DType::U8, &figures, &few);
    let text = chosen.unwrap_err().to_string();
    assert!(text.contains("ring: needs 14 flags; a rank has 3"), "{text}");
    assert!(text.contains("direct: reduces 8 sources; the engine takes 4"), "{text}");

    let root = Collective::Broadcast { root: 8 };
    let refused = choose(root, &node(8), 1, DType::U8, &figures, &Limits::default());
    assert_eq!(refused.unwrap_err().to_string(), "root 8 of broadcast: ranks are 0 to 7");
}

#[test]
fn a_choice_is_made_in_microseconds() {
    for ranks in [2, 8] {
        let topology = node(ranks);
        let start = Instant::now();
        let turns = 100;
        for turn in 0..turns {
            let count = 1 + (turn << 10);
            assert!(choice(Collective::AllReduce, &topology, count).predicted > Duration::ZERO);
        }
        eprintln!("{ranks} ranks: {:?} a choice", start.elapsed() / turns as u32);
    }
    let topology = Topology::uniform(1024, 128).unwrap();
    let start = Instant::now();
    choice(Collective::AllReduce, &topology, 1 << 20);
    eprintln!("1024 ranks: {:?} a choice", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_description_shows_figures_candidates_and_folded_steps() {
    let topology = Topology::uniform(64, 8).unwrap();
    for (collective, count, topology) in [
        (Collective::AllReduce, 64 << 20, topology),
        (Collective::Broadcast { root: 1 }, 2, node(64)),
    ] {
        let choice = choice(collective, &topology, count);
        let plan = Plan::new(collective, &topology, choice.algorithm).unwrap();
        let text = describe(&plan, &choice);
        println!("{text}");
        assert!(text.contains("of 64 ranks on"), "{text}");
        assert!(text.contains(&format!("* {}", choice.algorithm)), "{text}");
        assert!(text.lines().count() < 90, "{text}");
    }
    let topology = node(64);
    let plan = Plan::new(Collective::AllReduce, &topology, Algorithm::Direct).unwrap();
    let text = describe(&plan, &choice(Collective::AllReduce, &topology, 2));
    assert!(text.contains("wait for flag 0 of rank 1..63"), "{text}");
}

#[test]
fn a_single_byte_has_a_page_in_staging() {
    for staging_bytes in [64, 1 << 20] {
        let limits = Limits { staging_bytes, ..Limits::default() };
        let mut figures = Figures::default();
        figures.local.latency_ns = 0.0;
        figures.step_overhead_ns = 0.0;
        let choice =
            choose(Collective::AllReduce, &node(2), 1, DType::U8, &figures, &limits).unwrap();
        assert_eq!((choice.page_elements, choice.staging_bytes), (1, 64), "{choice:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn choices_stay_within_their_limits(
        (ranks, nodes) in prop_oneof![3 => (1_u32..=16, 1_u32..=4), 1 => (17_u32..=128, 1_u32..=16)],
        collective in prop::sample::select(Collective::ALL.to_vec()),
        dtype in prop::sample::select(DType::ALL.to_vec()),
        count in prop_oneof![0_usize..300, 1_usize..(1 << 31)],
        staging_bytes in 64_u64..(64 << 20),
        max_depth in 0_u32..9,
        rates in prop::array::uniform4(1e8_f64..1e12),
        times in prop::array::uniform3(0.0_f64..1e5),
    ) {
        let topology = Topology::uniform(ranks, nodes.min(ranks)).unwrap();
        let mut figures = Figures::default();
        figures.local.bytes_per_second = rates[0];
        figures.network.bytes_per_second = rates[1];
        figures.copy_bytes_per_second = rates[2];
        figures.reduce_bytes_per_second = rates[3];
        figures.local.latency_ns = times[0];
        figures.network.latency_ns = times[1];
        figures.step_overhead_ns = times[2];
        prop_assert!(figures.is_valid());
        let limits = Limits { staging_bytes, max_depth, ..Limits::default() };
        let Ok(chosen) = choose(collective, &topology, count, dtype, &figures, &limits) else {
            prop_assert!(staging_bytes < 2 * 64 * u64::from(ranks));
            return Ok(());
        };
        let again = choose(collective, &topology, count, dtype, &figures, &limits);
        prop_assert_eq!(Ok(&chosen), again.as_ref());
        let plan = Plan::new(collective, &topology, chosen.algorithm).unwrap();
        let areas = u64::from(plan.program(0).areas);
        let page = chosen.page_bytes().next_multiple_of(GRAIN_BYTES as u64);
        prop_assert!(chosen.page_elements >= 1 && chosen.depth >= 1);
        prop_assert!(chosen.depth <= max_depth.max(1));
        if count > 0 && collective != Collective::Barrier {
            prop_assert_eq!(areas * page * u64::from(chosen.depth), chosen.staging_bytes);
            prop_assert!(chosen.staging_bytes <= staging_bytes);
            let whole = chosen.page_elements >= count;
            prop_assert!(whole || chosen.page_bytes().is_multiple_of(GRAIN_BYTES as u64));
            prop_assert!(chosen.page_elements as u64 * chosen.rounds >= count as u64);
            prop_assert!(chosen.page_elements as u64 * (chosen.rounds - 1) < count as u64);
        }
        prop_assert!(chosen.lower_bound <= chosen.predicted);
        for row in &chosen.considered {
            if let Verdict::Possible { predicted, .. } = row.verdict {
                prop_assert!(predicted.as_secs_f64() >= chosen.predicted.as_secs_f64() * 0.979
                    || chosen.predicted == chosen.lower_bound);
                prop_assert!(ranks > 16 || predicted >= chosen.lower_bound, "{:?}", row);
            }
        }
    }
}
