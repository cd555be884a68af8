//! Element types, as C numbers them.

use std::ffi::c_int;

use stepccl::DType;

use crate::guard::Failure;

/// Type of the elements: one of `STEPCCL_FLOAT32`, `STEPCCL_FLOAT64`, and so on.
pub type DTypeNumber = c_int;

/// `float`.
pub const STEPCCL_FLOAT32: DTypeNumber = 0;
/// `double`.
pub const STEPCCL_FLOAT64: DTypeNumber = 1;
/// IEEE 754 binary16.
pub const STEPCCL_FLOAT16: DTypeNumber = 2;
/// The upper half of a `float`.
pub const STEPCCL_BFLOAT16: DTypeNumber = 3;
/// 8 bits: 4 of exponent, 3 of fraction, no infinity.
pub const STEPCCL_FLOAT8_E4M3: DTypeNumber = 4;
/// 8 bits: 5 of exponent, 2 of fraction.
pub const STEPCCL_FLOAT8_E5M2: DTypeNumber = 5;
/// `int8_t`.
pub const STEPCCL_INT8: DTypeNumber = 6;
/// `uint8_t`.
pub const STEPCCL_UINT8: DTypeNumber = 7;
/// `int32_t`.
pub const STEPCCL_INT32: DTypeNumber = 8;
/// `uint32_t`.
pub const STEPCCL_UINT32: DTypeNumber = 9;
/// `int64_t`.
pub const STEPCCL_INT64: DTypeNumber = 10;
/// `uint64_t`.
pub const STEPCCL_UINT64: DTypeNumber = 11;
/// One byte: false where it is 0.
pub const STEPCCL_BOOL: DTypeNumber = 12;
/// Two `float`, the real part first.
pub const STEPCCL_COMPLEX64: DTypeNumber = 13;
/// Two `double`, the real part first.
pub const STEPCCL_COMPLEX128: DTypeNumber = 14;

pub(crate) fn dtype(number: DTypeNumber) -> Result<DType, Failure> {
    Ok(match number {
        STEPCCL_FLOAT32 => DType::F32,
        STEPCCL_FLOAT64 => DType::F64,
        STEPCCL_FLOAT16 => DType::F16,
        STEPCCL_BFLOAT16 => DType::Bf16,
        STEPCCL_FLOAT8_E4M3 => DType::F8E4M3,
        STEPCCL_FLOAT8_E5M2 => DType::F8E5M2,
        STEPCCL_INT8 => DType::I8,
        STEPCCL_UINT8 => DType::U8,
        STEPCCL_INT32 => DType::I32,
        STEPCCL_UINT32 => DType::U32,
        STEPCCL_INT64 => DType::I64,
        STEPCCL_UINT64 => DType::U64,
        STEPCCL_BOOL => DType::Bool,
        STEPCCL_COMPLEX64 => DType::C64,
        STEPCCL_COMPLEX128 => DType::C128,
        _ => {
            return Err(Failure::argument(format!(
                "dtype = {number}: must be one of STEPCCL_FLOAT32 (0) to STEPCCL_COMPLEX128 (14)"
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_one_number() {
        let all: Vec<_> = (0..15).map(|number| dtype(number).unwrap()).collect();
        assert!(DType::ALL.iter().all(|d| all.contains(d)), "{all:?}");
        assert!(dtype(-1).is_err() && dtype(15).is_err());
    }
}
