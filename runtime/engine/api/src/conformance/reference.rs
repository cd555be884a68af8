//! What a reduction should give, in wide arithmetic.

use stepccl_plan::{DType, ReduceOp};

use super::drive::Numbers;

/// One element: integers as they are, floats as f64.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Integer(i128),
    Float(f64),
}

/// Little-endian bytes of one random element, small enough that nothing overflows a float.
pub(super) fn random(numbers: &mut Numbers, dtype: DType) -> Vec<u8> {
    let bits = numbers.next();
    // -16 to 16 in steps that a bfloat16 keeps.
    let small = (bits % 129) as f64 / 4.0 - 16.0;
    match dtype {
        DType::F32 => (small as f32 * 1.1).to_ne_bytes().to_vec(),
        DType::F64 => (small * 1.1).to_ne_bytes().to_vec(),
        DType::F16 => half::f16::from_f64(small).to_ne_bytes().to_vec(),
        DType::Bf16 => half::bf16::from_f64(small).to_ne_bytes().to_vec(),
        _ => bits.to_ne_bytes()[..dtype.size()].to_vec(),
    }
}

/// The elements of `bytes`.
pub(super) fn decode(bytes: &[u8], dtype: DType) -> Vec<Number> {
    bytes.chunks_exact(dtype.size()).map(|element| decode_one(element, dtype)).collect()
}

fn decode_one(element: &[u8], dtype: DType) -> Number {
    // On a big-endian machine the low bytes are the last; widen by hand.
    let mut bits = 0u64;
    for (at, byte) in element.iter().enumerate() {
        let place = if cfg!(target_endian = "big") { element.len() - 1 - at } else { at };
        bits |= u64::from(*byte) << (8 * place);
    }
    match dtype {
        DType::F32 => Number::Float(f32::from_bits(bits as u32).into()),
        DType::F64 => Number::Float(f64::from_bits(bits)),
        DType::F16 => Number::Float(half::f16::from_bits(bits as u16).into()),
        DType::Bf16 => Number::Float(half::bf16::from_bits(bits as u16).into()),
        DType::I32 => Number::Integer((bits as i32).into()),
        DType::I64 => Number::Integer((bits as i64).into()),
        DType::U8 => Number::Integer((bits as u8).into()),
        other => panic!("the conformance tests do not know {other}"),
    }
}

/// Fails unless `found` is `sources` combined by `op` and divided by `divisor`, within the
/// rounding of `dtype`.
pub(super) fn assert_combined(
    found: Number,
    sources: &[Number],
    dtype: DType,
    op: ReduceOp,
    divisor: u32,
) {
    match found {
        Number::Integer(found) => {
            let sources = sources.iter().map(|source| match source {
                Number::Integer(value) => *value,
                Number::Float(_) => panic!("one type, two kinds"),
            });
            let combined = match op {
                ReduceOp::Max => sources.max(),
                ReduceOp::Min => sources.min(),
                _ => Some(wrap(sources.sum(), dtype)),
            };
            let expected = combined.expect("a source") / i128::from(divisor);
            assert_eq!(found, expected, "{op} of {dtype} over {divisor}");
        }
        Number::Float(found) => {
            let sources: Vec<f64> = sources
                .iter()
                .map(|source| match source {
                    Number::Float(value) => *value,
                    Number::Integer(_) => panic!("one type, two kinds"),
                })
                .collect();
            if sources.iter().any(|value| value.is_nan()) {
                assert!(found.is_nan(), "{op} of {dtype} with a NaN: {found}");
                return;
            }
            let combined = match op {
                ReduceOp::Max => sources.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                ReduceOp::Min => sources.iter().copied().fold(f64::INFINITY, f64::min),
                _ => sources.iter().sum(),
            };
            let expected = combined / f64::from(divisor);
            let slack = slack(&sources, expected, dtype, op, divisor);
            assert!(
                (found - expected).abs() <= slack,
                "{op} of {dtype} over {divisor}: {found} and not {expected} (within {slack})"
            );
        }
    }
}

/// Sums and divides in f32 (f64 for double) and one rounding to the type at the end.
fn slack(sources: &[f64], expected: f64, dtype: DType, op: ReduceOp, divisor: u32) -> f64 {
    let (working, last) = match dtype {
        DType::F64 => (f64::EPSILON, f64::EPSILON),
        DType::F16 => (f64::from(f32::EPSILON), half::f16::EPSILON.to_f64() / 2.0),
        DType::Bf16 => (f64::from(f32::EPSILON), half::bf16::EPSILON.to_f64() / 2.0),
        _ => (f64::from(f32::EPSILON), f64::from(f32::EPSILON)),
    };
    if matches!(op, ReduceOp::Max | ReduceOp::Min) && divisor == 1 {
        return 0.0;
    }
    let magnitude: f64 = sources.iter().map(|value| value.abs()).sum();
    let sum = working * magnitude * sources.len() as f64 / f64::from(divisor);
    // Subnormal halves have a fixed step.
    sum + last * expected.abs() + if dtype == DType::F16 { 2f64.powi(-25) } else { 0.0 }
}

fn wrap(value: i128, dtype: DType) -> i128 {
    match dtype {
        DType::I32 => i128::from(value as i32),
        DType::I64 => i128::from(value as i64),
        _ => i128::from(value as u8),
    }
}
