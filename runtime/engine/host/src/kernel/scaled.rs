//! Sources that are multiplied by a factor first.

use std::mem::MaybeUninit;

use stepccl_plan::{DType, ReduceOp};

use super::level::Level;
use super::reduce;

/// Bytes of a source that are multiplied on the stack before they are combined; well within the
/// first cache.
const BLOCK: usize = 4096;
/// Sources whose pointers fit on the stack.
const FEW: usize = 16;

/// Sets each of `count` elements of `dst` to that of `src` multiplied by `factor`.
///
/// Short floats are multiplied in f32 and rounded once; integers are multiplied by the factor
/// truncated to a whole number, and wrap; both parts of a complex number are multiplied.
///
/// # Panics
/// Where `dtype` is `Bool`.
///
/// # Safety
/// As for [`reduce`](super::reduce) with the one source.
pub unsafe fn scale(dst: *mut u8, src: *const u8, count: usize, dtype: DType, factor: f64) {
    // SAFETY: the caller vouches for the pointers.
    unsafe { scale_at(Level::best(), dst, src, count, dtype, factor) }
}

/// [`scale`] with one of the processor's instruction sets, for tests and measurements.
///
/// # Panics
/// As [`scale`].
///
/// # Safety
/// As for [`scale`].
pub unsafe fn scale_at(
    level: Level,
    dst: *mut u8,
    src: *const u8,
    count: usize,
    dtype: DType,
    factor: f64,
) {
    // SAFETY: the caller vouches for the pointers.
    unsafe { level.scale(dst, src, count, dtype, factor) }
}

/// [`reduce`](super::reduce) where source `scaled` is first multiplied by `factor` as [`scale`]
/// does: the result has the same bits as if that source had been scaled in memory before.
///
/// A `scaled` that is no source multiplies nothing.
///
/// # Panics
/// As [`reduce`](super::reduce) and [`scale`].
///
/// # Safety
/// As for [`reduce`](super::reduce).
pub unsafe fn reduce_scaled(
    dst: *mut u8,
    srcs: &[*const u8],
    count: usize,
    dtype: DType,
    op: ReduceOp,
    divisor: u32,
    (scaled, factor): (usize, f64),
) {
    if scaled >= srcs.len() {
        // SAFETY: the caller vouches for the pointers.
        return unsafe { reduce(dst, srcs, count, dtype, op, divisor) };
    }
    let size = dtype.size();
    let mut block = MaybeUninit::<[u8; BLOCK]>::uninit();
    let block = block.as_mut_ptr().cast::<u8>();
    let mut few = [std::ptr::null(); FEW];
    let mut many = Vec::new();
    let moved = if srcs.len() <= FEW {
        &mut few[..srcs.len()]
    } else {
        many.resize(srcs.len(), std::ptr::null());
        &mut many[..]
    };
    let mut done = 0;
    while done < count {
        let elements = (BLOCK / size).min(count - done);
        // SAFETY:
        // - elements `done .. done + elements` lie within the count the caller vouches for;
        // - the block has room for `elements`, and is written before it is read.
        unsafe {
            for (moved, src) in moved.iter_mut().zip(srcs) {
                *moved = src.add(done * size);
            }
            scale(block, moved[scaled], elements, dtype, factor);
            moved[scaled] = block;
            reduce(dst.add(done * size), moved, elements, dtype, op, divisor);
        }
        done += elements;
    }
}
