//! Rates of the copy and reduction kernels beside memcpy, on this machine, on one core.
//!
//!     cargo run --release --example reduce_rate -p stepccl-engine-host [cache|memory|stream|short]
//!
//! A rate is bytes of result per second, the median of rounds of at least two milliseconds. The
//! parts: results that stay in the second level cache with their sources; results that go to
//! memory; ordinary against streaming stores by size; and the time of short messages.

use std::hint::black_box;
use std::time::{Duration, Instant};

use stepccl_engine_host::kernel::{
    Level, copy, copy_stream, levels, reduce, reduce_at, reduce_stream,
};
use stepccl_plan::{DType, ReduceOp};

const ROUNDS: usize = 15;
const ROUND: Duration = Duration::from_millis(2);

fn main() {
    let part = std::env::args().nth(1);
    let wanted = |name| part.as_deref().is_none_or(|part| part == name);
    println!("GB/s of result; best level: {}", Level::best());
    if wanted("cache") {
        by_type("cache", 256 << 10);
    }
    if wanted("memory") {
        by_type("memory", 64 << 20);
    }
    if wanted("stream") {
        streaming();
    }
    if wanted("short") {
        short();
    }
}

/// Every type at every level; two sources apart from the result and in place, and four.
fn by_type(place: &str, bytes: usize) {
    let sources: Vec<_> = (1..5).map(|i| vec![i; bytes]).collect();
    let mut dst = vec![1_u8; bytes];
    let srcs: Vec<_> = sources.iter().map(|s| s.as_ptr()).collect();
    let dst = dst.as_mut_ptr();
    let copied = rate(bytes, || {
        // SAFETY: both are vectors of `bytes` bytes.
        unsafe { copy(dst, black_box(srcs[0]), bytes) }
    });
    println!("\n{place}: {} KiB of result; memcpy {copied:.1}", bytes >> 10);
    println!("{:10} {:9} {:>5} {:>9} {:>9} {:>9}", "type", "level", "op", "2", "2 inplace", "4");
    for dtype in DType::ALL {
        for level in levels() {
            let ops =
                [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Avg, ReduceOp::BitOr];
            for op in ops.into_iter().filter(|op| op.applies_to(dtype)) {
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
                let (two, in_place, four) = (at(&srcs[..2]), at(&[dst, srcs[1]]), at(&srcs));
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

/// Ordinary against streaming stores. Pages of 256 KiB, as the rounds of a plan take them: the
/// sources are two pages that stay in the cache, as staging does, and the result is large.
fn streaming() {
    const PAGE: usize = 256 << 10;
    println!("\nstores by size of the result, sources in the cache; f32 sum");
    println!("{:>6} {:>9} {:>9} {:>9} {:>9}", "MiB", "copy", "stream", "reduce", "stream");
    let (a, b) = (vec![1_u8; PAGE], vec![2_u8; PAGE]);
    let srcs = [a.as_ptr(), b.as_ptr()];
    for mib in [1_usize, 4, 16, 64, 256] {
        let bytes = mib << 20;
        let mut dst = vec![3_u8; bytes];
        let (count, dtype, op) = (PAGE / 4, DType::F32, ReduceOp::Sum);
        let mut pages = |page: &dyn Fn(*mut u8)| {
            rate(bytes, || dst.chunks_exact_mut(PAGE).for_each(|part| page(part.as_mut_ptr())))
        };
        let copied = pages(&|dst| {
            // SAFETY: source and destination have a page each and are apart.
            unsafe { copy(dst, black_box(srcs[0]), PAGE) }
        });
        let copy_streamed = pages(&|dst| {
            // SAFETY: source and destination have a page each and are apart.
            unsafe { copy_stream(dst, black_box(srcs[0]), PAGE) }
        });
        let reduced = pages(&|dst| {
            // SAFETY: sources and destination have a page each and are apart.
            unsafe { reduce(dst, black_box(&srcs), count, dtype, op, 1) }
        });
        let streamed = pages(&|dst| {
            // SAFETY: sources and destination have a page each and are apart.
            unsafe { reduce_stream(dst, black_box(&srcs), count, dtype, op, 1) }
        });
        println!("{mib:6} {copied:9.1} {copy_streamed:9.1} {reduced:9.1} {streamed:9.1}");
    }
}

/// Time of a reduction of few elements.
fn short() {
    println!("\nshort messages, ns a call, f32 sum of two sources");
    let (a, b) = ([1.0_f32; 64], [2.0_f32; 64]);
    let mut dst = [0.0_f32; 64];
    for count in [0, 1, 2, 7, 8, 31, 32, 64] {
        let srcs = [a.as_ptr().cast(), b.as_ptr().cast()];
        let start = dst.as_mut_ptr().cast();
        let per_ns = rate(1, || {
            // SAFETY: all arrays have 64 elements.
            unsafe { reduce(start, black_box(&srcs), count, DType::F32, ReduceOp::Sum, 1) }
        });
        println!("{count:4} {:6.1}", 1.0 / per_ns);
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
