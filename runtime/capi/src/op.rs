//! How contributions are combined, as C numbers it.

use std::ffi::c_int;

use stepccl::ReduceOp;

use crate::guard::Failure;

/// How contributions are combined: one of `STEPCCL_SUM`, `STEPCCL_PROD`, and so on. Not every type
/// has every operation; what it has not is `STEPCCL_INVALID_ARGUMENT`.
pub type OpNumber = c_int;

/// Sum; integers wrap.
pub const STEPCCL_SUM: OpNumber = 0;
/// Product; integers wrap.
pub const STEPCCL_PROD: OpNumber = 1;
/// Largest; a NaN of any rank is the result.
pub const STEPCCL_MAX: OpNumber = 2;
/// Smallest; a NaN of any rank is the result.
pub const STEPCCL_MIN: OpNumber = 3;
/// Sum divided by the number of ranks; integers truncate towards zero.
pub const STEPCCL_AVG: OpNumber = 4;
/// Bits that every rank has.
pub const STEPCCL_BIT_AND: OpNumber = 6;
/// Bits that any rank has.
pub const STEPCCL_BIT_OR: OpNumber = 7;
/// Bits that an odd number of ranks have.
pub const STEPCCL_BIT_XOR: OpNumber = 8;

pub(crate) fn op(number: OpNumber) -> Result<ReduceOp, Failure> {
    Ok(match number {
        STEPCCL_SUM => ReduceOp::Sum,
        STEPCCL_PROD => ReduceOp::Prod,
        STEPCCL_MAX => ReduceOp::Max,
        STEPCCL_MIN => ReduceOp::Min,
        STEPCCL_AVG => ReduceOp::Avg,
        STEPCCL_BIT_AND => ReduceOp::BitAnd,
        STEPCCL_BIT_OR => ReduceOp::BitOr,
        STEPCCL_BIT_XOR => ReduceOp::BitXor,
        _ => {
            return Err(Failure::argument(format!(
                "op = {number}: must be one of STEPCCL_SUM (0) to STEPCCL_AVG (4), \
                 STEPCCL_BIT_AND (6), STEPCCL_BIT_OR (7), STEPCCL_BIT_XOR (8)"
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_operations() {
        let known: Vec<_> = (-1..10).filter_map(|number| op(number).ok()).collect();
        let all = ReduceOp::ALL.into_iter().filter(|op| *op != ReduceOp::PremulSum);
        assert_eq!(known, all.collect::<Vec<_>>());
    }
}
