//! Every collective, type and operation against a reference, on fresh random data.

mod common;

use common::{Random, Value, check_reduced, config, on_ranks, random_vec};
use half::{bf16, f16};
use stepccl::{Communicator, Config, ReduceOp};

/// Lengths of a block: none, one, odd, around lines and slots, and past a page.
const COUNTS: [usize; 8] = [0, 1, 7, 64, 1000, 4099, 33_333, 300_001];

/// Additions in rank order make as many roundings as there are ranks; 16-bit types one.
fn roundings<T: Value>(ranks: u32) -> f64 {
    if T::DTYPE.size() == 2 { 1.0 } else { f64::from(ranks) }
}

/// Inputs of all ranks, the same on every thread of a test.
fn inputs<T: Value>(seed: u64, ranks: u32, len: usize) -> Vec<Vec<T>> {
    let mut random = Random::from_seed(seed);
    (0..ranks).map(|_| random_vec(&mut random, len)).collect()
}

fn expect_reduced<T: Value>(
    results: &[T],
    all: &[Vec<T>],
    offset: usize,
    op: ReduceOp,
    roundings: f64,
    what: &str,
) {
    for (i, result) in results.iter().enumerate() {
        let contributions: Vec<T> = all.iter().map(|v| v[offset + i]).collect();
        if let Err(wrong) = check_reduced(*result, &contributions, op, roundings) {
            panic!("{what}: element {i}: {wrong}");
        }
    }
}

fn everything<T: Value>(comm: &Communicator, seed: u64, counts: &[usize], roundings: f64) {
    let (me, n) = (comm.rank() as usize, comm.ranks());
    for (i, &count) in counts.iter().enumerate() {
        let seed = seed.wrapping_add(i as u64 * 2).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let one = inputs::<T>(seed, n, count);
        let many = inputs::<T>(seed ^ 0xff, n, count * n as usize);
        let what =
            |name: &str| format!("{name} of {count} {} on rank {me} of {n}, seed {seed}", T::DTYPE);
        let root = (seed % u64::from(n)) as u32;
        let is_root = me == root as usize;

        for op in ReduceOp::all_of(T::DTYPE) {
            let mut out = vec![T::POISON; count];
            comm.all_reduce(&one[me], &mut out, op).unwrap();
            expect_reduced(&out, &one, 0, op, roundings, &what("all_reduce"));

            let mut data = one[me].clone();
            comm.all_reduce_in_place(&mut data, op).unwrap();
            expect_reduced(&data, &one, 0, op, roundings, &what("all_reduce in place"));

            let mut out = vec![T::POISON; count];
            comm.reduce(&one[me], is_root.then_some(&mut out[..]), root, op).unwrap();
            if is_root {
                expect_reduced(&out, &one, 0, op, roundings, &what("reduce"));
            }

            let mut out = vec![T::POISON; count];
            comm.reduce_scatter(&many[me], &mut out, op).unwrap();
            expect_reduced(&out, &many, me * count, op, roundings, &what("reduce_scatter"));
        }

        let mut data = if is_root { one[me].clone() } else { vec![T::POISON; count] };
        comm.broadcast(&mut data, root).unwrap();
        assert_eq!(data, one[root as usize], "{}", what("broadcast"));

        let mut out = vec![T::POISON; count * n as usize];
        comm.all_gather(&one[me], &mut out).unwrap();
        assert_eq!(out, one.concat(), "{}", what("all_gather"));

        let mut out = vec![T::POISON; count * n as usize];
        comm.all_to_all(&many[me], &mut out).unwrap();
        let expected: Vec<T> =
            many.iter().flat_map(|v| v[me * count..][..count].to_vec()).collect();
        assert_eq!(out, expected, "{}", what("all_to_all"));

        let mut out = vec![T::POISON; count * n as usize];
        comm.gather(&one[me], is_root.then_some(&mut out[..]), root).unwrap();
        if is_root {
            assert_eq!(out, one.concat(), "{}", what("gather"));
        }

        let mut out = vec![T::POISON; count];
        comm.scatter(is_root.then_some(&many[me][..]), &mut out, root).unwrap();
        assert_eq!(out, many[root as usize][me * count..][..count], "{}", what("scatter"));

        comm.barrier().unwrap();
    }
}

fn on<T: Value>(ranks: u32, config: &Config, counts: &[usize], roundings: f64) {
    let seed = Random::new().next();
    on_ranks(ranks, config, |comm| everything::<T>(comm, seed, counts, roundings));
}

#[test]
fn floats_on_1_to_8_ranks() {
    for ranks in 1..=8 {
        on::<f32>(
            ranks,
            &config(),
            &COUNTS[..if ranks <= 4 { 8 } else { 7 }],
            roundings::<f32>(ranks),
        );
    }
}

#[test]
fn long_messages_through_staging_and_past_it() {
    for ranks in [2, 5] {
        for single_copy in [Some(true), Some(false)] {
            let config = Config { single_copy, ..config() };
            on::<i32>(ranks, &config, &[1500, 2049, 70_001], 1.0);
        }
    }
}

#[test]
fn other_types_on_1_to_4_ranks() {
    for ranks in 1..=4 {
        let counts = &COUNTS[..7];
        on::<f64>(ranks, &config(), counts, roundings::<f64>(ranks));
        on::<f16>(ranks, &config(), counts, roundings::<f16>(ranks));
        on::<bf16>(ranks, &config(), counts, roundings::<bf16>(ranks));
        on::<i32>(ranks, &config(), counts, 0.0);
        on::<i64>(ranks, &config(), counts, 0.0);
        on::<u8>(ranks, &config(), counts, 0.0);
    }
    on::<i8>(3, &config(), &COUNTS[..7], 0.0);
    on::<u32>(3, &config(), &COUNTS[..7], 0.0);
    on::<u64>(3, &config(), &COUNTS[..7], 0.0);
}

#[test]
fn sixteen_bit_types_on_8_ranks_round_once() {
    on::<f16>(8, &config(), &COUNTS[..6], 1.0);
    on::<bf16>(8, &config(), &COUNTS[..6], 1.0);
}

#[test]
fn every_algorithm_gives_the_same_within_its_roundings() {
    for algorithm in stepccl::Algorithm::ALL {
        for ranks in [2, 3, 5, 8] {
            let config = Config { algorithm: Some(algorithm), ..config() };
            on::<f32>(ranks, &config, &[1, 1000, 33_333], f64::from(ranks));
            on::<i32>(ranks, &config, &[1, 1000, 33_333], 0.0);
        }
    }
}

#[test]
fn small_staging_deep_pipelines_and_odd_pages_change_nothing() {
    for (buffer, depth, page) in [
        (64 << 10, 1, Some(64)),
        (64 << 10, 16, None),
        (256 << 10, 3, Some(1000)),
        (1 << 20, 64, Some(4096)),
    ] {
        let config = Config {
            buffer_bytes: Some(buffer),
            pipeline_depth: Some(depth),
            page_bytes: page,
            ..config()
        };
        on::<f32>(3, &config, &[0, 1, 1000, 40_001], 3.0);
        on::<u8>(2, &config, &[1, 999, 40_001], 0.0);
    }
}

#[test]
fn channels_change_nothing() {
    for channels in [1, 3] {
        let config = Config { channels, channel_min_bytes: 1024, ..config() };
        on::<f32>(2, &config, &COUNTS, 2.0);
        on::<f32>(3, &config, &COUNTS[..7], 3.0);
    }
}

#[test]
fn one_and_two_shot_agree_bit_for_bit() {
    let seed = Random::new().next();
    let run = |algorithm| {
        let config = Config { algorithm: Some(algorithm), ..config() };
        on_ranks(5, &config, |comm| {
            let all = inputs::<f32>(seed, 5, 10_007);
            let mut out = vec![f32::NAN; 10_007];
            comm.all_reduce(&all[comm.rank() as usize], &mut out, ReduceOp::Sum).unwrap();
            out.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
        })
    };
    let (one, two) = (run(stepccl::Algorithm::Direct), run(stepccl::Algorithm::TwoShot));
    assert!(one.iter().all(|r| *r == one[0]), "ranks differ, seed {seed}");
    assert_eq!(one, two, "seed {seed}");
}

#[test]
fn nan_of_any_rank_is_the_result_everywhere() {
    for op in ReduceOp::all_of(stepccl::DType::F32) {
        on_ranks(3, &config(), |comm| {
            let mut data = vec![comm.rank() as f32; 33];
            if comm.rank() == 1 {
                data[7] = f32::NAN;
            }
            comm.all_reduce_in_place(&mut data, op).unwrap();
            for (i, v) in data.iter().enumerate() {
                assert_eq!(v.is_nan(), i == 7, "{op} element {i} is {v}");
            }
        });
    }
}

#[test]
fn messages_of_all_sizes_both_ways() {
    let seed = Random::new().next();
    for (ranks, single_copy) in [(2, true), (2, false), (4, true), (4, false)] {
        let config = Config { single_copy: Some(single_copy), ..config() };
        on_ranks(ranks, &config, |comm| {
            let (me, n) = (comm.rank(), comm.ranks());
            for (i, count) in [0usize, 1, 15, 4000, 200_003, 1_000_001].into_iter().enumerate() {
                let all = inputs::<i64>(seed + i as u64, n, count);
                let (next, previous) = ((me + 1) % n, (me + n - 1) % n);
                let mut got = vec![i64::POISON; count];
                // Even ranks send first, so that somebody receives.
                if me.is_multiple_of(2) {
                    comm.send(&all[me as usize], next).unwrap();
                    comm.recv(&mut got, previous).unwrap();
                } else {
                    comm.recv(&mut got, previous).unwrap();
                    comm.send(&all[me as usize], next).unwrap();
                }
                assert_eq!(got, all[previous as usize], "{count} elements, seed {seed}");
            }
        });
    }
}

#[test]
fn a_thousand_mixed_operations_stay_in_order() {
    let seed = Random::new().next();
    for (ranks, operations) in [(2, 1000), (4, 200)] {
        on_ranks(ranks, &config(), |comm| {
            let mut choices = Random::from_seed(seed);
            let n = comm.ranks() as usize;
            let me = comm.rank() as usize;
            for step in 0..operations {
                let count = match choices.below(10) {
                    0..7 => choices.below(64),
                    7..9 => choices.below(5000),
                    _ => choices.below(100_000),
                };
                let root = choices.below(n) as u32;
                match choices.below(4) {
                    0 => {
                        let mut data = vec![me as i32 + step; count];
                        comm.all_reduce_in_place(&mut data, ReduceOp::Sum).unwrap();
                        let sum = (0..n as i32).sum::<i32>() + step * n as i32;
                        assert!(data.iter().all(|v| *v == sum), "step {step}, seed {seed}");
                    }
                    1 => {
                        let mut data = vec![if me == root as usize { step } else { -1 }; count];
                        comm.broadcast(&mut data, root).unwrap();
                        assert!(data.iter().all(|v| *v == step), "step {step}, seed {seed}");
                    }
                    2 => {
                        let mut out = vec![-1; count * n];
                        comm.all_gather(&vec![me as i32 * 1000 + step; count], &mut out).unwrap();
                        for (i, v) in out.iter().enumerate() {
                            assert_eq!(
                                *v,
                                (i / count) as i32 * 1000 + step,
                                "step {step}, seed {seed}"
                            );
                        }
                    }
                    _ => {
                        let mut out = vec![-1; if me == root as usize { count } else { 0 }];
                        let input = vec![step; count];
                        let output = (me == root as usize).then_some(&mut out[..]);
                        comm.reduce(&input, output, root, ReduceOp::Max).unwrap();
                        assert!(out.iter().all(|v| *v == step), "step {step}, seed {seed}");
                    }
                }
            }
        });
    }
}

#[test]
fn outputs_too_large_for_the_caches_are_right() {
    // Written past the caches from 16 MiB on; odd, so that pages and lines are ragged.
    let count = (17 << 20) / 4 + 13;
    let seed = Random::new().next();
    on_ranks(2, &config(), |comm| {
        let (me, n) = (comm.rank() as usize, 2);
        let all = inputs::<f32>(seed, n, count);
        let mut out = vec![f32::NAN; count + 3];
        comm.all_reduce(&all[me], &mut out[1..=count], ReduceOp::Sum).unwrap();
        expect_reduced(&out[1..=count], &all, 0, ReduceOp::Sum, 1.0, "large all_reduce");
        assert!(out[0].is_nan() && out[count + 1].is_nan(), "written outside, seed {seed}");
        let mut out = vec![f32::NAN; 2 * count];
        comm.all_gather(&all[me], &mut out).unwrap();
        assert!(out == all.concat(), "large all_gather, seed {seed}");
    });
}
