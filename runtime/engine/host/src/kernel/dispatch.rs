//! From type and operation as values to the loop compiled for them.

use stepccl_plan::{DType, ReduceOp};

use super::combine::{And, Combine, Larger, Or, Product, Smaller, Sum, Xor};
use super::element::{Brain, Element, Truth};
use super::half::Half;
use super::isa::Isa;
use super::job::Job;
use super::minifloat::{E4M3, E5M2};
use super::number::{Complex, Ordered};

/// Runs `job` for elements of `dtype`.
///
/// # Panics
/// Where `op` does not apply to `dtype`.
///
/// # Safety
/// As for [`super::reduce`].
pub(super) unsafe fn dispatch<I: Isa>(isa: I, job: Job<'_>, dtype: DType, op: ReduceOp) {
    // SAFETY: the caller vouches for the job's pointers.
    unsafe {
        match dtype {
            DType::F32 => real::<I, f32>(isa, job, op),
            DType::F64 => real::<I, f64>(isa, job, op),
            DType::F16 => real::<I, Half>(isa, job, op),
            DType::Bf16 => real::<I, Brain>(isa, job, op),
            DType::F8E4M3 => real::<I, E4M3>(isa, job, op),
            DType::F8E5M2 => real::<I, E5M2>(isa, job, op),
            DType::I8 => integer::<I, i8>(isa, job, op),
            DType::U8 => integer::<I, u8>(isa, job, op),
            DType::I32 => integer::<I, i32>(isa, job, op),
            DType::U32 => integer::<I, u32>(isa, job, op),
            DType::I64 => integer::<I, i64>(isa, job, op),
            DType::U64 => integer::<I, u64>(isa, job, op),
            DType::Bool => bits::<I, Truth>(isa, job, of_truth(op)),
            DType::C64 => complex::<I, f32, Complex<f32>>(isa, job, op),
            DType::C128 => complex::<I, f64, Complex<f64>>(isa, job, op),
            other => unreachable!("{other} has no kernel, the tests run every type"),
        }
    }
}

/// The bit operation that does to 0 and 1 what `op` does to truth values.
fn of_truth(op: ReduceOp) -> ReduceOp {
    match op {
        ReduceOp::Sum | ReduceOp::Max => ReduceOp::BitOr,
        ReduceOp::Prod | ReduceOp::Min => ReduceOp::BitAnd,
        other => other,
    }
}

/// Runs `job` for elements that are combined in real numbers.
///
/// # Safety
/// As for [`super::reduce`].
unsafe fn real<I: Isa, E: Element<Number: Ordered>>(isa: I, job: Job<'_>, op: ReduceOp) {
    // SAFETY: the caller vouches for the job's pointers.
    unsafe {
        match op {
            ReduceOp::Max => then_divide::<I, E, Larger>(isa, job),
            ReduceOp::Min => then_divide::<I, E, Smaller>(isa, job),
            _ => arithmetic::<I, E>(isa, job, op),
        }
    }
}

/// Runs `job` for integers.
///
/// # Safety
/// As for [`super::reduce`].
unsafe fn integer<I: Isa, E: Element<Number: Ordered>>(isa: I, job: Job<'_>, op: ReduceOp) {
    if !matches!(op, ReduceOp::BitAnd | ReduceOp::BitOr | ReduceOp::BitXor) {
        // SAFETY: the caller vouches for the job's pointers.
        return unsafe { real::<I, E>(isa, job, op) };
    }
    // The bits of the bytes are those of the integers.
    let bytes = job.count * size_of::<E::Raw>();
    // SAFETY:
    // - the caller vouches for the job's pointers;
    // - a job whose only source is its result reads and writes the result.
    unsafe {
        bits::<I, u8>(isa, Job { count: bytes, ..job }, op);
        divide::<I, E>(isa, job);
    }
}

/// Runs `job` for complex numbers `C` of parts `F`.
///
/// # Safety
/// As for [`super::reduce`].
unsafe fn complex<I: Isa, F: Element, C: Element>(isa: I, job: Job<'_>, op: ReduceOp) {
    // SAFETY:
    // - the caller vouches for the job's pointers;
    // - a complex number is two parts.
    unsafe {
        match op {
            ReduceOp::Prod => arithmetic::<I, C>(isa, job, op),
            // Parts are added and divided by themselves.
            _ => arithmetic::<I, F>(isa, Job { count: 2 * job.count, ..job }, op),
        }
    }
}

/// Runs `job` for sums and products.
///
/// # Safety
/// As for [`super::reduce`].
unsafe fn arithmetic<I: Isa, E: Element>(isa: I, job: Job<'_>, op: ReduceOp) {
    // SAFETY: the caller vouches for the job's pointers.
    unsafe {
        match op {
            ReduceOp::Sum | ReduceOp::Avg | ReduceOp::PremulSum if job.divisor != 1 => {
                isa.run::<E, Sum, true>(job);
            }
            ReduceOp::Sum | ReduceOp::Avg | ReduceOp::PremulSum => isa.run::<E, Sum, false>(job),
            ReduceOp::Prod if job.divisor != 1 => isa.run::<E, Product, true>(job),
            ReduceOp::Prod => isa.run::<E, Product, false>(job),
            other => unreachable!("{other} does not apply to this type"),
        }
    }
}

/// Runs `job` for elements that are combined bit by bit; they are not divided.
///
/// # Safety
/// As for [`super::reduce`].
unsafe fn bits<I: Isa, E: Element<Number = u8>>(isa: I, job: Job<'_>, op: ReduceOp) {
    // SAFETY: the caller vouches for the job's pointers.
    unsafe {
        match op {
            ReduceOp::BitAnd => isa.run::<E, And, false>(job),
            ReduceOp::BitOr => isa.run::<E, Or, false>(job),
            ReduceOp::BitXor => isa.run::<E, Xor, false>(job),
            other => unreachable!("{other} does not apply to this type"),
        }
    }
}

/// Runs `job` for `C`, and a second pass where the result is to be divided: nobody divides a
/// maximum but a curious caller. The first pass rounds nothing.
///
/// # Safety
/// As for [`super::reduce`].
unsafe fn then_divide<I: Isa, E: Element, C: Combine<E::Number>>(isa: I, job: Job<'_>) {
    // SAFETY: the caller vouches for the job's pointers.
    unsafe {
        isa.run::<E, C, false>(job);
        divide::<I, E>(isa, job);
    }
}

/// Divides the result of `job`, if it is to be divided.
///
/// # Safety
/// As for [`super::reduce`].
unsafe fn divide<I: Isa, E: Element>(isa: I, job: Job<'_>) {
    if job.divisor != 1 {
        let srcs = [job.dst.cast_const()];
        // SAFETY: a job whose only source is its result reads and writes the result.
        unsafe { isa.run::<E, Sum, true>(Job { srcs: &srcs, ..job }) }
    }
}

/// Runs [`super::scale`] for elements of `dtype`.
///
/// # Panics
/// Where elements of `dtype` cannot be multiplied by a factor.
///
/// # Safety
/// As for [`super::scale`].
pub(super) unsafe fn scale<I: Isa>(
    isa: I,
    dst: *mut u8,
    src: *const u8,
    count: usize,
    dtype: DType,
    factor: f64,
) {
    // SAFETY:
    // - the caller vouches for the pointers;
    // - a complex number is two parts.
    unsafe {
        match dtype {
            DType::F32 => isa.scale::<f32>(dst, src, count, factor),
            DType::F64 => isa.scale::<f64>(dst, src, count, factor),
            DType::F16 => isa.scale::<Half>(dst, src, count, factor),
            DType::Bf16 => isa.scale::<Brain>(dst, src, count, factor),
            DType::F8E4M3 => isa.scale::<E4M3>(dst, src, count, factor),
            DType::F8E5M2 => isa.scale::<E5M2>(dst, src, count, factor),
            DType::I8 => isa.scale::<i8>(dst, src, count, factor),
            DType::U8 => isa.scale::<u8>(dst, src, count, factor),
            DType::I32 => isa.scale::<i32>(dst, src, count, factor),
            DType::U32 => isa.scale::<u32>(dst, src, count, factor),
            DType::I64 => isa.scale::<i64>(dst, src, count, factor),
            DType::U64 => isa.scale::<u64>(dst, src, count, factor),
            DType::C64 => isa.scale::<f32>(dst, src, 2 * count, factor),
            DType::C128 => isa.scale::<f64>(dst, src, 2 * count, factor),
            other => unreachable!("{other} has no product with a factor"),
        }
    }
}
