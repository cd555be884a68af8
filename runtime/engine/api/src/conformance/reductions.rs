//! Reductions of every type and operation against wide arithmetic.

use stepccl_plan::{DType, ReduceOp};

use crate::{Address, Engine, Operation, Scale};

use super::buffer::Buffer;
use super::drive::{Numbers, copy, run, staging, within};
use super::reference::{FACTOR, assert_combined, decode, random, scaled};

const COUNTS: [usize; 7] = [0, 1, 2, 7, 31, 100, 1023];
const SOURCES: [usize; 5] = [1, 2, 3, 5, 17];
/// Random elements of which the sources are pieces.
const POOL: usize = 2048;
/// Bytes between the sources in user memory: the longest with its skew.
const AREA: u64 = 16_384 + 64;

/// Sources in user memory and in the staging of every rank that is reached, into user memory,
/// into own staging, and into one of the sources.
///
/// # Panics
///
/// Where an engine does not conform.
pub fn reductions(mut engines: Vec<Box<dyn Engine>>) {
    let mut numbers = Numbers(2);
    for rank in 0..engines.len() {
        let ranks = engines.len() as u32;
        let engine = &mut *engines[rank];
        let capabilities = engine.capabilities();
        if !capabilities.reduces {
            continue;
        }
        let most = (capabilities.max_reduce_sources as usize).min(SOURCES[SOURCES.len() - 1]);
        let user = Buffer::new(engine, AREA as usize * (most + 1), true);
        for dtype in DType::ALL {
            let pool: Vec<u8> = (0..POOL).flat_map(|_| random(&mut numbers, dtype)).collect();
            for op in ReduceOp::all_of(dtype) {
                for count in COUNTS {
                    for sources in SOURCES.into_iter().filter(|sources| *sources <= most) {
                        let divisor = if op == ReduceOp::Avg { sources as u32 } else { 1 };
                        // Nothing is aligned.
                        let skew = (numbers.next() % 64) as usize;
                        let contents: Vec<Vec<u8>> = (0..sources)
                            .map(|_| {
                                let first = (numbers.next() % 1024) as usize * dtype.size();
                                pool[first..first + count * dtype.size()].to_vec()
                            })
                            .collect();
                        let mut srcs: Vec<Address> = Vec::new();
                        for (index, content) in contents.iter().enumerate() {
                            let at = AREA as usize * index + skew;
                            user.write(at, content);
                            srcs.push(match staging(engine, index as u32) {
                                Some(area) if (index as u32) < ranks => {
                                    let there = within(area, skew as u64);
                                    copy(engine, user.at(at), there, content.len() as u64);
                                    there
                                }
                                _ => user.at(at),
                            });
                        }
                        let result = AREA as usize * sources + skew;
                        for dst in [user.at(result), srcs[0], srcs[sources - 1]] {
                            let scaled = numbers.next() as usize % sources;
                            let scale = (op == ReduceOp::PremulSum)
                                .then_some(Scale { source: scaled as u32, factor: FACTOR.into() });
                            let operation = Operation::Reduce {
                                srcs: &srcs,
                                dst,
                                count: count as u64,
                                dtype,
                                op,
                                divisor,
                                scale,
                            };
                            let bytes = (count * dtype.size()) as u64;
                            assert_eq!(run(engine, &operation), Ok(bytes), "{operation:?}");
                            copy_if_apart(engine, dst, user.at(result), bytes);
                            check(
                                &user.read(result, bytes as usize),
                                &contents,
                                dtype,
                                (op, scale.map(|_| scaled)),
                                divisor,
                            );
                            // What was combined into a source is put back.
                            if let Some(index) = srcs.iter().position(|src| *src == dst) {
                                user.write(result, &contents[index]);
                                copy(engine, user.at(result), dst, bytes);
                            }
                        }
                    }
                }
            }
        }
        a_nan_is_kept(engine, &user);
        user.forget(engine);
    }
}

/// Checks a result; the source `scaled` was multiplied.
fn check(
    found: &[u8],
    contents: &[Vec<u8>],
    dtype: DType,
    (op, scaled): (ReduceOp, Option<usize>),
    divisor: u32,
) {
    let mut sources: Vec<_> = contents.iter().map(|content| decode(content, dtype)).collect();
    if let Some(scaled) = scaled {
        sources[scaled].iter_mut().for_each(|value| *value = self::scaled(*value, dtype));
    }
    for (at, found) in decode(found, dtype).into_iter().enumerate() {
        let column: Vec<_> = sources.iter().map(|source| source[at]).collect();
        assert_combined(found, &column, dtype, op, divisor);
    }
}

fn copy_if_apart(engine: &mut dyn Engine, src: Address, dst: Address, bytes: u64) {
    if src != dst {
        copy(engine, src, dst, bytes);
    }
}

fn a_nan_is_kept(engine: &mut dyn Engine, user: &Buffer) {
    let (nan, one) = (f32::NAN.to_ne_bytes(), 1f32.to_ne_bytes());
    for op in ReduceOp::all_of(DType::F32) {
        for (first, second) in [(nan, one), (one, nan)] {
            user.write(0, &first);
            user.write(64, &second);
            let operation = Operation::Reduce {
                srcs: &[user.at(0), user.at(64)],
                dst: user.at(128),
                count: 1,
                dtype: DType::F32,
                op,
                divisor: 1,
                scale: None,
            };
            assert_eq!(run(engine, &operation), Ok(4));
            let contents = [first.to_vec(), second.to_vec()];
            check(&user.read(128, 4), &contents, DType::F32, (op, None), 1);
        }
    }
}
