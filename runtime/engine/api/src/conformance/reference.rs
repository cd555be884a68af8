//! What a reduction should give, in wide arithmetic.

use stepccl_plan::{DType, Kind, ReduceOp};

use super::drive::Numbers;

/// What one source of a `PremulSum` is multiplied by; exact in every float.
pub(super) const FACTOR: i8 = -2;

/// One element: integers and truth values as they are, floats as f64, the real part first.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Integer(i128),
    Float([f64; 2]),
}

/// Native bytes of one random element, small enough that no sum overflows a float.
pub(super) fn random(numbers: &mut Numbers, dtype: DType) -> Vec<u8> {
    let bits = numbers.next();
    // -16 to 16 in steps that a bfloat16 keeps.
    let small = (bits % 129) as f64 / 4.0 - 16.0;
    let other = ((bits >> 32) % 129) as f64 / 4.0 - 16.0;
    match dtype {
        DType::F32 => (small as f32 * 1.1).to_ne_bytes().to_vec(),
        DType::F64 => (small * 1.1).to_ne_bytes().to_vec(),
        DType::F16 => half::f16::from_f64(small).to_ne_bytes().to_vec(),
        DType::Bf16 => half::bf16::from_f64(small).to_ne_bytes().to_vec(),
        // A sign, and all up to 16.
        DType::F8E4M3 => vec![(bits % 0x59) as u8 | (bits >> 56) as u8 & 0x80],
        DType::F8E5M2 => vec![(bits % 0x4d) as u8 | (bits >> 56) as u8 & 0x80],
        DType::C64 => [small, other].map(|x| (x as f32 * 1.1).to_ne_bytes()).concat(),
        DType::C128 => [small, other].map(|x| (x * 1.1).to_ne_bytes()).concat(),
        _ => bits.to_ne_bytes()[..dtype.size()].to_vec(),
    }
}

/// The elements of `bytes`.
pub(super) fn decode(bytes: &[u8], dtype: DType) -> Vec<Number> {
    bytes.chunks_exact(dtype.size()).map(|element| decode_one(element, dtype)).collect()
}

fn decode_one(element: &[u8], dtype: DType) -> Number {
    if dtype.kind() == Kind::Complex {
        let part = if dtype == DType::C64 { DType::F32 } else { DType::F64 };
        let (re, im) = element.split_at(part.size());
        return match (decode_one(re, part), decode_one(im, part)) {
            (Number::Float([re, _]), Number::Float([im, _])) => Number::Float([re, im]),
            parts => panic!("parts of a complex number are floats, not {parts:?}"),
        };
    }
    // On a big-endian machine the low bytes are the last; widen by hand.
    let mut bits = 0u64;
    for (at, byte) in element.iter().enumerate() {
        let place = if cfg!(target_endian = "big") { element.len() - 1 - at } else { at };
        bits |= u64::from(*byte) << (8 * place);
    }
    let float = match dtype {
        DType::F32 => f32::from_bits(bits as u32).into(),
        DType::F64 => f64::from_bits(bits),
        DType::F16 => half::f16::from_bits(bits as u16).into(),
        DType::Bf16 => half::bf16::from_bits(bits as u16).into(),
        DType::F8E4M3 => four_and_three(bits as u8),
        // The upper byte of a binary16.
        DType::F8E5M2 => half::f16::from_bits((bits as u16) << 8).into(),
        DType::Bool => return Number::Integer(i128::from(bits != 0)),
        integer => return Number::Integer(wrap(i128::from(bits), integer)),
    };
    Number::Float([float, 0.0])
}

/// The value of an 8-bit float of 4 bits of exponent and 3 of fraction.
fn four_and_three(raw: u8) -> f64 {
    let (exponent, fraction) = (i32::from(raw >> 3 & 15), f64::from(raw & 7));
    let magnitude = match (exponent, raw & 7) {
        (15, 7) => f64::NAN,
        (0, _) => fraction * 2f64.powi(-9),
        _ => (8.0 + fraction) * 2f64.powi(exponent - 10),
    };
    if raw & 0x80 == 0 { magnitude } else { -magnitude }
}

/// `value` multiplied by [`FACTOR`].
pub(super) fn scaled(value: Number, dtype: DType) -> Number {
    match value {
        Number::Integer(value) => Number::Integer(wrap(value * i128::from(FACTOR), dtype)),
        Number::Float(parts) => Number::Float(parts.map(|part| part * f64::from(FACTOR))),
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
            let combined = sources
                .iter()
                .map(|source| match source {
                    Number::Integer(value) => *value,
                    Number::Float(_) => panic!("one type, two kinds"),
                })
                .reduce(|a, b| whole(a, b, dtype, op));
            let expected = combined.expect("a source") / i128::from(divisor);
            assert_eq!(found, expected, "{op} of {dtype} over {divisor}");
        }
        Number::Float(found) => {
            let sources: Vec<[f64; 2]> = sources
                .iter()
                .map(|source| match source {
                    Number::Float(parts) => *parts,
                    Number::Integer(_) => panic!("one type, two kinds"),
                })
                .collect();
            if sources.iter().flatten().any(|value| value.is_nan()) {
                assert!(found[0].is_nan(), "{op} of {dtype} with a NaN: {found:?}");
                return;
            }
            let combined = sources.iter().copied().reduce(|a, b| real(a, b, op));
            let expected = combined.expect("a source").map(|part| part / f64::from(divisor));
            let slack = slack(&sources, expected, dtype, op, divisor);
            let largest = largest(dtype);
            for (found, expected) in found.into_iter().zip(expected) {
                let beyond = expected.abs() + slack > largest;
                let overflows = beyond && (found.abs() == largest || !found.is_finite());
                assert!(
                    overflows || (found - expected).abs() <= slack,
                    "{op} of {dtype} over {divisor}: {found} and not {expected} (within {slack})"
                );
            }
        }
    }
}

fn whole(a: i128, b: i128, dtype: DType, op: ReduceOp) -> i128 {
    let truth = dtype == DType::Bool;
    match op {
        ReduceOp::Max => a.max(b),
        ReduceOp::Min => a.min(b),
        ReduceOp::BitAnd => a & b,
        ReduceOp::BitXor => a ^ b,
        ReduceOp::BitOr => a | b,
        ReduceOp::Sum if truth => a | b,
        ReduceOp::Prod => wrap(a.wrapping_mul(b), dtype),
        _ => wrap(a + b, dtype),
    }
}

fn real([a, b]: [f64; 2], [c, d]: [f64; 2], op: ReduceOp) -> [f64; 2] {
    match op {
        ReduceOp::Max => [a.max(c), 0.0],
        ReduceOp::Min => [a.min(c), 0.0],
        ReduceOp::Prod => [a * c - b * d, a * d + b * c],
        _ => [a + c, b + d],
    }
}

/// The largest finite number, where a product of the sources can be larger.
fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 65_504.0,
        DType::F8E4M3 => 448.0,
        DType::F8E5M2 => 57_344.0,
        _ => f64::INFINITY,
    }
}

/// Combines and divides in f32 (f64 for double) and one rounding to the type at the end.
fn slack(sources: &[[f64; 2]], expected: [f64; 2], dtype: DType, op: ReduceOp, by: u32) -> f64 {
    let single = f64::from(f32::EPSILON);
    // Subnormal numbers have a fixed step.
    let (working, last, step) = match dtype {
        DType::F64 | DType::C128 => (f64::EPSILON, f64::EPSILON, 0.0),
        DType::F16 => (single, half::f16::EPSILON.to_f64() / 2.0, 2f64.powi(-25)),
        DType::Bf16 => (single, half::bf16::EPSILON.to_f64() / 2.0, 0.0),
        DType::F8E4M3 => (single, 2f64.powi(-4), 2f64.powi(-10)),
        DType::F8E5M2 => (single, 2f64.powi(-3), 2f64.powi(-17)),
        _ => (single, single, 0.0),
    };
    if matches!(op, ReduceOp::Max | ReduceOp::Min) && by == 1 {
        return 0.0;
    }
    let sizes = sources.iter().map(|[re, im]| re.abs() + im.abs());
    let magnitude: f64 = if op == ReduceOp::Prod { sizes.product() } else { sizes.sum() };
    let all = working * magnitude * 2.0 * sources.len() as f64 / f64::from(by);
    all + last * expected[0].abs().max(expected[1].abs()) + step
}

/// An integer as `dtype` holds it; a truth value as it is.
fn wrap(value: i128, dtype: DType) -> i128 {
    let bits = 8 * dtype.size() as u32;
    let low = value & ((1 << bits) - 1);
    let negative = dtype.kind() == Kind::Signed && low >> (bits - 1) == 1;
    if negative { low - (1 << bits) } else { low }
}
