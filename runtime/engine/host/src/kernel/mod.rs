//! Copy and reduction kernels: the arithmetic of the embedded engine.
//!
//! # Memory that others write
//!
//! Sources may lie in memory that another process can write at any time. The kernels therefore
//! hold raw pointers only, never a reference or a slice, and every pattern of bits they may read
//! is a valid number. A peer that writes while a kernel reads makes the result wrong, as it would
//! with a racing `memcpy`, and can do nothing worse: no length, index or address comes from the
//! data. Who waits for whom, so that results are right, is the plan's business.
//!
//! # Results
//!
//! Sources are combined strictly in their order. 16-bit and 8-bit floats are combined in f32 over
//! all sources, divided there if at all, and rounded once to nearest even; too large a value
//! becomes infinity, or the largest number where the type has no infinity. Integer sums and products wrap,
//! integer quotients truncate towards zero. Truth values are combined as 0 and 1: sum and maximum
//! are "or", product and minimum are "and". A complex product is (ac - bd, ad + bc), each of the
//! four products rounded. A NaN result of a reduction is the canonical one of its type (positive,
//! quiet, no payload); the parts of a complex number count by themselves. No multiplication is
//! fused with an addition. So the result has the same bits on every processor and at every
//! [`Level`], unless the thread runs with another rounding mode or flushes denormals.

mod combine;
mod dispatch;
mod element;
mod fold;
mod half;
mod isa;
mod job;
mod level;
mod minifloat;
mod number;
mod quotient;
mod scaled;
mod short;
mod stream;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;

use stepccl_plan::{DType, ReduceOp};

use job::Job;
pub use level::{Level, levels};
pub use scaled::{reduce_scaled, scale, scale_at};
pub use stream::{copy_stream, reduce_stream};

/// Sets each of `count` elements of `dst` to the combination of the same elements of all `srcs`,
/// in that order, divided by `divisor`.
///
/// `Avg` combines like `Sum`; a `divisor` of 1 (or 0) divides nothing. One source is copied or
/// divided. Without sources nothing happens. Pointers need no alignment. `PremulSum` combines like
/// `Sum`, too: see [`reduce_scaled`]. Truth values are not divided.
///
/// # Panics
/// Where `op` does not apply to `dtype`.
///
/// # Safety
/// - `dst` is valid for writes, and each of `srcs` for reads, of `count` elements of `dtype`.
/// - Each of `srcs` is `dst` itself or does not overlap `count` elements of it.
/// - No other thread or process accesses `dst` meanwhile. Sources may be written by another
///   process; the result is then unspecified where it was.
#[inline]
pub unsafe fn reduce(
    dst: *mut u8,
    srcs: &[*const u8],
    count: usize,
    dtype: DType,
    op: ReduceOp,
    divisor: u32,
) {
    if let &[a, b] = srcs
        && divisor <= 1
        // SAFETY: the caller vouches for the pointers.
        && unsafe { short::sum(dst, [a, b], count, dtype, op) }
    {
        return;
    }
    // SAFETY: the caller vouches for the pointers.
    unsafe { reduce_at(Level::best(), dst, srcs, count, dtype, op, divisor) }
}

/// [`reduce`] with one of the processor's instruction sets, for tests and measurements.
///
/// # Panics
/// As [`reduce`].
///
/// # Safety
/// As for [`reduce`].
pub unsafe fn reduce_at(
    level: Level,
    dst: *mut u8,
    srcs: &[*const u8],
    count: usize,
    dtype: DType,
    op: ReduceOp,
    divisor: u32,
) {
    let divisor = divisor.max(1);
    match srcs {
        [] => {}
        // SAFETY: `dst` and `src` have `count` elements, and are one or apart.
        &[src] if divisor == 1 => unsafe { copy(dst, src, count * dtype.size()) },
        // SAFETY: the caller vouches for the pointers.
        _ => unsafe { level.run(Job { dst, srcs, count, divisor }, dtype, op) },
    }
}

/// Copies `bytes` bytes from `src` to `dst`; nothing to do where the two are one.
///
/// # Safety
/// - `dst` is valid for writes and `src` for reads of `bytes` bytes.
/// - `src` is `dst` itself or does not overlap it.
/// - No other thread or process accesses `dst` meanwhile. `src` may be written by another process;
///   the copy is then unspecified where it was.
pub unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
    if dst.cast_const() != src {
        // SAFETY: the caller vouches for both ranges, and they do not overlap.
        unsafe { src.copy_to_nonoverlapping(dst, bytes) }
    }
}
