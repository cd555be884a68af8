//! Rates of the copy and reduction kernels beside memcpy, on this machine, on one core.
//!
//!     cargo run --release --example reduce_rate -p stepccl-engine-host
//!
//! A rate is bytes of result per second. Two sizes are measured: one that stays in the second
//! level cache with its sources, and one that goes to memory. Each figure is the median of rounds
//! of at least two milliseconds.

use std::hint::black_box;
use std::time::{Duration, Instant};

use stepccl_engine_host::kernel::{Level, copy, levels, reduce, reduce_at};
use stepccl_plan::{DType, ReduceOp};

const ROUNDS: usize = 15;
const ROUND: Duration = Duration::from_millis(2);

fn main() {
    println!("best level: {}", Level::best());
    let sizes = [("L2", 256 << 10), ("memory", 64 << 20)];
    for (place, bytes) in sizes.into_iter().take(if std::env::args().len() > 1 { 1 } else { 2 }) {
        let sources: Vec<_> = (0..4).map(|i| vec![i as u8; bytes]).collect();
        let mut dst = vec![0_u8; bytes];
        let srcs: Vec<_> = sources.iter().map(|s| s.as_ptr()).collect();
        let dst = dst.as_mut_ptr();
        let copied = rate(bytes, || {
            // SAFETY: both are vectors of `bytes` bytes.
            unsafe { copy(dst, black_box(srcs[0]), bytes) }
        });
        println!("\n{bytes} bytes of result ({place}); memcpy {copied:.1} GB/s");
        println!(
            "{:10} {:9} {:>5} {:>9} {:>9} {:>9}",
            "type", "level", "op", "2", "2 inplace", "4"
        );
        for dtype in DType::ALL {
            for level in levels() {
                for op in [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Avg] {
                    let at = |srcs: &[*const u8]| {
                        let divisor = if op == ReduceOp::Avg { srcs.len() as u32 } else { 1 };
                        let count = bytes / dtype.size();
                        rate(bytes, || {
                            // SAFETY: all are vectors of `bytes` bytes.
                            unsafe {
                                reduce_at(level, dst, black_box(srcs), count, dtype, op, divisor);
                            }
                        })
                    };
                    let two = at(&srcs[..2]);
                    let in_place = at(&[dst, srcs[1]]);
                    let four = at(&srcs);
                    println!(
                        "{:10} {:9} {:>5} {two:9.1} {in_place:9.1} {four:9.1}",
                        dtype.name(),
                        level.name(),
                        op.name()
                    );
                }
            }
        }
    }
    println!("\nshort messages, ns a call, f32 sum of two sources");
    let (a, b) = ([1.0_f32; 64], [2.0_f32; 64]);
    let mut dst = [0.0_f32; 64];
    for count in [0, 1, 2, 7, 8, 31, 32, 64] {
        let srcs = [a.as_ptr().cast(), b.as_ptr().cast()];
        let start = dst.as_mut_ptr().cast();
        let per_second = rate(1, || {
            // SAFETY: all arrays have 64 elements.
            unsafe { reduce(start, black_box(&srcs), count, DType::F32, ReduceOp::Sum, 1) }
        });
        println!("{count:4} {:6.1}", 1.0 / per_second);
    }
    black_box(dst);
}

/// Median of `bytes` per nanosecond, which is GB/s.
fn rate(bytes: usize, mut call: impl FnMut()) -> f64 {
    call();
    let start = Instant::now();
    call();
    let calls = (ROUND.as_nanos() / start.elapsed().as_nanos().max(20)).max(1) as usize;
    let mut rates: Vec<_> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..calls {
                call();
            }
            (bytes * calls) as f64 / start.elapsed().as_nanos() as f64
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    rates[ROUNDS / 2]
}
