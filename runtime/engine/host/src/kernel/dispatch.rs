//! From type and operation as values to the loop compiled for them.

use stepccl_plan::{DType, ReduceOp};

use super::element::{Brain, Element};
use super::half::Half;
use super::isa::Isa;
use super::job::Job;
use super::number::{Larger, Smaller, Sum};

/// Runs `job` for elements of `dtype`.
///
/// # Safety
/// As for [`super::reduce`].
pub(super) unsafe fn dispatch<I: Isa>(isa: I, job: Job<'_>, dtype: DType, op: ReduceOp) {
    // SAFETY: the caller vouches for the job's pointers.
    unsafe {
        match dtype {
            DType::F32 => combine::<I, f32>(isa, job, op),
            DType::F64 => combine::<I, f64>(isa, job, op),
            DType::F16 => combine::<I, Half>(isa, job, op),
            DType::Bf16 => combine::<I, Brain>(isa, job, op),
            DType::I32 => combine::<I, i32>(isa, job, op),
            DType::I64 => combine::<I, i64>(isa, job, op),
            DType::U8 => combine::<I, u8>(isa, job, op),
            other => unreachable!("{other} has no kernel, the tests run every type"),
        }
    }
}

/// Runs `job` for elements of type `E`.
///
/// # Safety
/// As for [`super::reduce`].
unsafe fn combine<I: Isa, E: Element>(isa: I, job: Job<'_>, op: ReduceOp) {
    let divide = job.divisor != 1;
    // SAFETY:
    // - the caller vouches for the job's pointers;
    // - a job whose only source is its result reads and writes the result.
    unsafe {
        match op {
            ReduceOp::Sum | ReduceOp::Avg if divide => isa.run::<E, Sum, true>(job),
            ReduceOp::Sum | ReduceOp::Avg => isa.run::<E, Sum, false>(job),
            ReduceOp::Max => isa.run::<E, Larger, false>(job),
            ReduceOp::Min => isa.run::<E, Smaller, false>(job),
            other => unreachable!("{other} has no kernel, the tests run every operation"),
        }
        if divide && matches!(op, ReduceOp::Max | ReduceOp::Min) {
            // Nobody divides a maximum but a curious caller: a second pass is fast enough. The
            // first one rounded nothing.
            let srcs = [job.dst.cast_const()];
            isa.run::<E, Sum, true>(Job { srcs: &srcs, ..job });
        }
    }
}
