//! Sums of a few elements of two sources, which the shortest messages are.
//!
//! Finding the loop for a type and an instruction set takes longer than these additions. There is
//! no loop here, and so none that the compiler prepares for vectors.

use stepccl_plan::{DType, ReduceOp};

use super::element::{Brain, Element};
use super::number::Number;

/// Most elements that are summed here.
const FEW: usize = 4;

/// Sums the two sources if they are few elements of a common type; answers whether it did.
///
/// # Safety
/// As for [`super::reduce`].
#[inline]
pub(super) unsafe fn sum(
    dst: *mut u8,
    srcs: [*const u8; 2],
    count: usize,
    dtype: DType,
    op: ReduceOp,
) -> bool {
    if count > FEW || op != ReduceOp::Sum {
        return false;
    }
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        match dtype {
            DType::F32 => few::<f32>(dst, srcs, count),
            DType::F64 => few::<f64>(dst, srcs, count),
            DType::Bf16 => few::<Brain>(dst, srcs, count),
            DType::I32 => few::<i32>(dst, srcs, count),
            DType::I64 => few::<i64>(dst, srcs, count),
            _ => return false,
        }
    }
    true
}

/// Sums `count` elements, at most [`FEW`].
///
/// # Safety
/// As for [`super::reduce`].
#[inline(always)]
unsafe fn few<E: Element>(dst: *mut u8, [a, b]: [*const u8; 2], count: usize) {
    let (a, b, dst) = (a.cast::<E::Raw>(), b.cast::<E::Raw>(), dst.cast::<E::Raw>());
    // SAFETY:
    // - the caller vouches for `count` elements, and `i` is below it where this is called;
    // - unaligned accesses ask for no alignment, and every pattern of bits is an element.
    let one = |i: usize| unsafe {
        let (a, b) = (E::widen(a.add(i).read_unaligned()), E::widen(b.add(i).read_unaligned()));
        dst.add(i).write_unaligned(E::narrow(a.sum(b)));
    };
    if count > 0 {
        one(0);
    }
    if count > 1 {
        one(1);
    }
    if count > 2 {
        one(2);
    }
    if count > 3 {
        one(3);
    }
}
