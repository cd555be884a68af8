//! Elements of integer types, and what a reduction makes of them.

use stepccl_plan::{DType, Kind, ReduceOp};

/// An element, as a number.
///
/// # Safety
///
/// An element of `dtype` must be readable at `at`.
pub(super) unsafe fn load(at: *const u8, dtype: DType) -> i128 {
    let mut bytes = [0; 8];
    for (i, byte) in bytes[..dtype.size()].iter_mut().enumerate() {
        // SAFETY:
        // - The caller promises as many bytes as an element has.
        *byte = unsafe { at.wrapping_add(i).read() };
    }
    wrapped(i128::from(u64::from_le_bytes(bytes)), dtype)
}

/// Set an element to `value`, which it holds.
///
/// # Safety
///
/// An element of `dtype` must be writable at `at`.
pub(super) unsafe fn store(at: *mut u8, dtype: DType, value: i128) {
    for (i, byte) in value.to_le_bytes()[..dtype.size()].iter().enumerate() {
        // SAFETY:
        // - The caller promises as many bytes as an element has.
        unsafe { at.wrapping_add(i).write(*byte) }
    }
}

/// `value` as `dtype`, an integer, holds it.
pub(super) fn wrapped(value: i128, dtype: DType) -> i128 {
    let bits = 8 * dtype.size() as u32;
    let low = value & ((1 << bits) - 1);
    let negative = dtype.kind() == Kind::Signed && low >> (bits - 1) == 1;
    if negative { low - (1 << bits) } else { low }
}

/// All `values` combined; an average is not yet divided.
pub(super) fn combine(values: impl Iterator<Item = i128>, op: ReduceOp, dtype: DType) -> i128 {
    let all = values.reduce(|a, b| match op {
        ReduceOp::Prod => wrapped(a.wrapping_mul(b), dtype),
        ReduceOp::Max => a.max(b),
        ReduceOp::Min => a.min(b),
        ReduceOp::BitAnd => a & b,
        ReduceOp::BitOr => a | b,
        ReduceOp::BitXor => a ^ b,
        _ => a + b,
    });
    wrapped(all.expect("at least one source"), dtype)
}
