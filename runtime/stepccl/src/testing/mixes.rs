//! Random mixes of operations on random worlds.

use proptest::prelude::*;
use proptest::test_runner::Config;
use stepccl_plan::{Algorithm, Collective, DType, ReduceOp};

use super::manners::Manners;
use super::operations::Spec;
use super::schedule::Cluster;

/// The least staging there is: its small slots have 512 bytes.
const STAGING: usize = 64 << 10;

fn collective(ranks: u32) -> impl Strategy<Value = Collective> {
    let root = 0..ranks;
    prop_oneof![
        3 => Just(Collective::AllReduce),
        3 => root.clone().prop_map(|root| Collective::Broadcast { root }),
        2 => root.clone().prop_map(|root| Collective::Reduce { root }),
        1 => Just(Collective::AllGather),
        1 => Just(Collective::ReduceScatter),
        1 => Just(Collective::AllToAll),
        1 => root.clone().prop_map(|root| Collective::Gather { root }),
        1 => root.prop_map(|root| Collective::Scatter { root }),
        1 => Just(Collective::Barrier),
    ]
}

/// Elements of a block: none, within a small slot, around it, and many pages.
fn count() -> impl Strategy<Value = usize> {
    prop_oneof![
        1 => Just(0usize),
        6 => 1usize..64,
        2 => 64usize..600,
        1 => 600usize..4000,
    ]
}

fn integers() -> Vec<DType> {
    DType::ALL.into_iter().filter(|dtype| dtype.is_integer()).collect()
}

fn spec(ranks: u32) -> BoxedStrategy<Spec> {
    let call = (
        collective(ranks),
        prop::sample::select(Algorithm::ALL.to_vec()),
        prop::sample::select(integers()),
        prop::sample::select(ReduceOp::ALL.to_vec()),
        count(),
        prop_oneof![1usize..64, 64usize..2048],
        1u32..=6,
        any::<bool>(),
    )
        .prop_map(|(collective, algorithm, dtype, op, count, page_bytes, depth, in_place)| {
            Spec::Collective {
                count: if collective == Collective::Barrier { 0 } else { count },
                // Few enough rounds that a case takes no time.
                page_bytes: page_bytes.max(count * dtype.size() / 40),
                collective,
                algorithm,
                dtype,
                op,
                depth,
                in_place,
            }
        });
    if ranks == 1 {
        return call.boxed();
    }
    let bytes = prop_oneof![Just(0usize), 1usize..200, 200usize..9000];
    let message = (0..ranks, 1..ranks, bytes, -2i32..3).prop_map(move |(from, on, bytes, tag)| {
        Spec::Message { from, to: (from + on) % ranks, bytes, tag }
    });
    prop_oneof![3 => call, 1 => message].boxed()
}

#[derive(Debug, Clone)]
struct Case {
    ranks: u32,
    nodes: u32,
    manners: Manners,
    specs: Vec<Spec>,
    seed: u64,
}

fn case(operations: usize) -> impl Strategy<Value = Case> {
    let manners = (
        prop_oneof![Just(0u32), Just(10), Just(60)],
        prop_oneof![Just(0u32), Just(30), Just(100)],
        any::<bool>(),
    )
        .prop_map(|(full, channel, boards)| Manners {
            full,
            channel,
            boards,
            ..Manners::default()
        });
    (1u32..=5).prop_flat_map(move |ranks| {
        (
            1..=ranks,
            manners.clone(),
            prop::collection::vec(spec(ranks), 1..operations),
            any::<u64>(),
        )
            .prop_map(move |(nodes, manners, specs, seed)| Case {
                ranks,
                nodes,
                manners,
                specs,
                seed,
            })
    })
}

fn run(case: &Case) {
    let mut cluster = Cluster::new(case.ranks, case.nodes, STAGING, case.manners, case.seed);
    for spec in &case.specs {
        cluster.call(spec);
    }
    cluster.run();
}

fn cases(cases: u32) -> Config {
    Config { cases, max_shrink_iters: 400, failure_persistence: None, ..Config::default() }
}

proptest! {
    #![proptest_config(cases(200))]

    /// Messages only, many of one pair, so that places of its board are used again.
    #[test]
    fn messages_stay_in_order_and_in_their_posts(
        seed in any::<u64>(),
        boards in prop_oneof![1 => Just(false), 3 => Just(true)],
        channel in prop_oneof![Just(0u32), Just(50)],
        messages in prop::collection::vec((0u32..3, 1u32..3, 0usize..90, any::<bool>()), 10..60),
    ) {
        let manners = Manners { channel, boards, ..Manners::default() };
        let mut cluster = Cluster::new(3, 1, STAGING, manners, seed);
        for (from, on, bytes, long) in messages {
            let bytes = if long { bytes * 200 } else { bytes };
            let tag = bytes as i32;
            cluster.call(&Spec::Message { from, to: (from + on) % 3, bytes, tag });
        }
        cluster.run();
    }

    #[test]
    fn mixes_are_right_in_any_order_of_events(case in case(24)) {
        run(&case);
    }

    /// Small messages only: they share eight slots, and "finished" is told every fourth round.
    #[test]
    fn small_messages_with_one_sender_stay_in_their_slots(
        seed in any::<u64>(),
        ranks in 2u32..=4,
        channel in prop_oneof![Just(0u32), Just(50)],
        roots in prop::collection::vec((0u32..4, 1usize..100, any::<bool>()), 30..60),
    ) {
        let manners = Manners { channel, ..Manners::default() };
        let mut cluster = Cluster::new(ranks, 1, STAGING, manners, seed);
        for (root, count, large) in roots {
            // Mostly one root, which waits for nobody; now and then another, or a large message.
            let root = if root == 3 { 1 } else { 0 };
            cluster.call(&Spec::Collective {
                collective: Collective::Broadcast { root },
                algorithm: Algorithm::Direct,
                dtype: DType::U8,
                op: ReduceOp::Sum,
                count: if large && count < 20 { count * 100 } else { count },
                page_bytes: 256,
                depth: 3,
                in_place: true,
            });
        }
        cluster.run();
    }
}
