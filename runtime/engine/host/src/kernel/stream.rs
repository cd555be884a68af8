//! Results written past the caches.
//!
//! An ordinary store reads its cache line first, and the line drives another one out. Where the
//! result is large and nobody reads it soon, streaming stores spare both. Where it is read soon,
//! or lies in a cache already (a source that is the result, too), they are slower. The caller
//! knows which it is.
//!
//! Measured in a guest with two cores of a Xeon of model 207, sources of 256 KiB in the cache
//! (`cargo run --release --example reduce_rate -p stepccl-engine-host stream`), in GB/s, ordinary
//! and streaming: into 64 MiB, copies 4.2 and 8.4, f32 sums of two 2.7 and 7.6; into 1 MiB, copies
//! 38 and 18, sums 27 and 15.

use std::mem::MaybeUninit;

use stepccl_plan::{DType, ReduceOp};

use super::{copy, reduce};

/// Bytes of a cache line, and of what is streamed at once.
const LINE: usize = 64;
/// Bytes that are combined on the stack before they are streamed; well within the first cache.
const BLOCK: usize = 4096;

/// A block on the stack.
#[repr(align(64))]
struct Block(MaybeUninit<[u8; BLOCK]>);

/// [`copy`](super::copy) with streaming stores, where the processor has them.
///
/// All stores are ordered before any later one, as those of [`copy`](super::copy) are on x86_64.
///
/// # Safety
/// As for [`copy`](super::copy).
pub unsafe fn copy_stream(dst: *mut u8, src: *const u8, bytes: usize) {
    if dst.cast_const() == src {
        return;
    }
    let head = dst.align_offset(LINE).min(bytes);
    let lines = (bytes - head) / LINE;
    let tail = head + lines * LINE;
    // SAFETY: the three parts lie within `bytes`, and `dst + head` is aligned to a line or `lines`
    // is 0.
    unsafe {
        copy(dst, src, head);
        stream_lines(dst.add(head), src.add(head), lines);
        copy(dst.add(tail), src.add(tail), bytes - tail);
    }
    order_streams();
}

/// [`reduce`](super::reduce) with streaming stores, where the processor has them; the same bits.
///
/// All stores are ordered before any later one, as those of [`reduce`](super::reduce) are on
/// x86_64.
///
/// # Safety
/// As for [`reduce`](super::reduce).
pub unsafe fn reduce_stream(
    dst: *mut u8,
    srcs: &[*const u8],
    count: usize,
    dtype: DType,
    op: ReduceOp,
    divisor: u32,
) {
    let size = dtype.size();
    let head = dst.align_offset(LINE) / size;
    let apart = srcs.iter().all(|src| *src != dst.cast_const());
    let aligned = dst.addr().is_multiple_of(size);
    if srcs.is_empty() || !apart || !aligned || head >= count || srcs.len() > SOURCES {
        // SAFETY: the caller vouches for the pointers.
        return unsafe { reduce(dst, srcs, count, dtype, op, divisor) };
    }
    let mut block = Block(MaybeUninit::uninit());
    let block = block.0.as_mut_ptr().cast::<u8>();
    let mut moved = [std::ptr::null(); SOURCES];
    let mut done = 0;
    while done < count {
        let elements = if done == 0 && head > 0 { head } else { (BLOCK / size).min(count - done) };
        // SAFETY:
        // - elements `done .. done + elements` lie within the count the caller vouches for;
        // - the block has room for `elements`, and is written before it is copied.
        unsafe {
            for (moved, src) in moved.iter_mut().zip(srcs) {
                *moved = src.add(done * size);
            }
            reduce(block, &moved[..srcs.len()], elements, dtype, op, divisor);
            let dst = dst.add(done * size);
            let lines = if dst.addr().is_multiple_of(LINE) { elements * size / LINE } else { 0 };
            stream_lines(dst, block, lines);
            let rest = lines * LINE;
            copy(dst.add(rest), block.add(rest), elements * size - rest);
        }
        done += elements;
    }
    order_streams();
}

/// Sources whose pointers fit on the stack; more are combined without streaming.
const SOURCES: usize = 64;

/// Copies `lines` cache lines.
///
/// # Safety
/// - `dst` is valid for writes and `src` for reads of `lines` lines; they do not overlap.
/// - `dst` is aligned to a line, unless `lines` is 0.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn stream_lines(dst: *mut u8, src: *const u8, lines: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    const VECTORS: usize = LINE / size_of::<__m128i>();
    for line in 0..lines {
        // SAFETY:
        // - `line` is below `lines`;
        // - SSE2 is part of x86_64;
        // - the caller aligned `dst` to more than a vector.
        unsafe {
            let from = src.add(line * LINE).cast::<__m128i>();
            let to = dst.add(line * LINE).cast::<__m128i>();
            let mut vectors = [_mm_loadu_si128(from); VECTORS];
            for (i, vector) in vectors.iter_mut().enumerate().skip(1) {
                *vector = _mm_loadu_si128(from.add(i));
            }
            for (i, vector) in vectors.into_iter().enumerate() {
                _mm_stream_si128(to.add(i), vector);
            }
        }
    }
}

/// Copies `lines` cache lines; this processor has no streaming stores that Rust can name.
///
/// # Safety
/// `dst` is valid for writes and `src` for reads of `lines` lines; they do not overlap.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
unsafe fn stream_lines(dst: *mut u8, src: *const u8, lines: usize) {
    // SAFETY: the caller vouches for both ranges.
    unsafe { copy(dst, src, lines * LINE) }
}

/// Orders streaming stores before later stores: without it, a flag that is stored next, even with
/// release ordering, could be seen before them.
#[inline]
fn order_streams() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86_64.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}
