//! What the kernels should give, in f64 and i128.

use ::half::{bf16, f16};
use stepccl_plan::{DType, Kind, ReduceOp};

/// One element, or one part of a complex number.
#[derive(Clone, Copy, Debug)]
enum Value {
    Float(f64),
    Integer(i128),
}

/// Exponent bits, fraction bits, and whether there are no infinities.
fn format(dtype: DType) -> (u32, u32, bool) {
    match dtype {
        DType::F8E4M3 => (4, 3, true),
        DType::F8E5M2 => (5, 2, false),
        other => panic!("{other} is no 8-bit float"),
    }
}

/// The magnitude of an 8-bit float by its definition; NaN and infinity included.
fn magnitude(dtype: DType, code: u32) -> f64 {
    let (exponent_bits, fraction_bits, finite) = format(dtype);
    let bias = (1 << (exponent_bits - 1)) - 1;
    let (exponent, fraction) = (code >> fraction_bits, code & ((1 << fraction_bits) - 1));
    let last = exponent == (1 << exponent_bits) - 1;
    match (last, finite, fraction) {
        (true, true, f) if f == (1 << fraction_bits) - 1 => f64::NAN,
        (true, false, 0) => f64::INFINITY,
        (true, false, _) => f64::NAN,
        _ => {
            let whole = f64::from(fraction + if exponent == 0 { 0 } else { 1 << fraction_bits });
            whole * 2f64.powi(exponent.max(1) as i32 - bias - fraction_bits as i32)
        }
    }
}

/// The 8-bit float nearest to a number, found by looking at all of them.
pub(super) fn nearest_byte(dtype: DType, value: f64) -> u8 {
    let (exponent_bits, fraction_bits, finite) = format(dtype);
    let largest = (0..0x7f).rev().find(|code| magnitude(dtype, *code).is_finite()).unwrap();
    // Where the next larger number would be, if there was one.
    let beyond = 2.0 * magnitude(dtype, largest) - magnitude(dtype, largest - 1);
    let at = |code: u32| if code > largest { beyond } else { magnitude(dtype, code) };
    if value.is_nan() {
        let quiet = (((1 << exponent_bits) - 1) << fraction_bits) | 1 << (fraction_bits - 1);
        return if finite { 0x7f } else { quiet };
    }
    let distance = |code: u32| (at(code) - value.abs().min(2.0 * beyond)).abs();
    let code = (0..=largest + 1)
        .min_by(|a, b| distance(*a).total_cmp(&distance(*b)).then((a % 2).cmp(&(b % 2))))
        .unwrap();
    match (code > largest, finite) {
        (true, true) => largest as u8 | if value.is_sign_negative() { 0x80 } else { 0 },
        _ => code as u8 | if value.is_sign_negative() { 0x80 } else { 0 },
    }
}

pub(super) fn byte_value(dtype: DType, raw: u8) -> f64 {
    let magnitude = magnitude(dtype, u32::from(raw & 0x7f));
    if raw & 0x80 == 0 { magnitude } else { -magnitude }
}

fn decode(dtype: DType, raw: &[u8]) -> Value {
    let bits = raw.iter().rev().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    match dtype {
        DType::F32 => Value::Float(f64::from(f32::from_bits(bits as u32))),
        DType::F64 => Value::Float(f64::from_bits(bits)),
        DType::F16 => Value::Float(f16::from_bits(bits as u16).to_f64()),
        DType::Bf16 => Value::Float(bf16::from_bits(bits as u16).to_f64()),
        DType::F8E4M3 | DType::F8E5M2 => Value::Float(byte_value(dtype, bits as u8)),
        DType::Bool => Value::Integer(i128::from(bits != 0)),
        _ => Value::Integer(wrap(dtype, i128::from(bits))),
    }
}

/// Rounds as the type accumulates: f32 for shorter floats.
fn round_step(dtype: DType, value: f64) -> f64 {
    if dtype == DType::F64 { value } else { f64::from(value as f32) }
}

/// Bits of the element nearest to an accumulated float, or of an integer that wraps.
fn encode(dtype: DType, value: Value) -> u64 {
    match value {
        Value::Float(float) => match dtype {
            DType::F32 if float.is_nan() => u64::from(f32::NAN.to_bits()),
            DType::F32 => u64::from((float as f32).to_bits()),
            DType::F64 if float.is_nan() => f64::NAN.to_bits(),
            DType::F64 => float.to_bits(),
            DType::F16 if float.is_nan() => 0x7e00,
            DType::F16 => u64::from(f16::from_f32(float as f32).to_bits()),
            DType::Bf16 if float.is_nan() => 0x7fc0,
            DType::Bf16 => u64::from(bf16::from_f32(float as f32).to_bits()),
            _ => u64::from(nearest_byte(dtype, float)),
        },
        Value::Integer(integer) => integer as u64 & (u64::MAX >> (64 - 8 * dtype.size())),
    }
}

/// An integer as `dtype` holds it.
fn wrap(dtype: DType, value: i128) -> i128 {
    let bits = 8 * dtype.size() as u32;
    let low = value & ((1 << bits) - 1);
    let negative = dtype.kind() == Kind::Signed && low >> (bits - 1) == 1;
    if negative { low - (1 << bits) } else { low }
}

fn combine(dtype: DType, op: ReduceOp, a: Value, b: Value) -> Value {
    let upwards = |x: f64, y: f64| if x > y || (x == y && x.is_sign_positive()) { x } else { y };
    match (a, b) {
        (Value::Float(x), Value::Float(y)) => Value::Float(match op {
            _ if x.is_nan() || y.is_nan() => f64::NAN,
            ReduceOp::Max => upwards(x, y),
            ReduceOp::Min => -upwards(-x, -y),
            ReduceOp::Prod => round_step(dtype, x * y),
            // A sum in f64 rounded to f32 is the sum in f32: 53 bits are twice 24 and more.
            _ => round_step(dtype, x + y),
        }),
        (Value::Integer(x), Value::Integer(y)) if dtype == DType::Bool => {
            Value::Integer(match op {
                ReduceOp::Sum | ReduceOp::Max | ReduceOp::BitOr => i128::from(x + y > 0),
                ReduceOp::BitXor => i128::from(x != y),
                _ => i128::from(x + y == 2),
            })
        }
        (Value::Integer(x), Value::Integer(y)) => Value::Integer(match op {
            ReduceOp::Max => x.max(y),
            ReduceOp::Min => x.min(y),
            ReduceOp::Prod => wrap(dtype, wrap(DType::I64, x).wrapping_mul(y)),
            ReduceOp::BitAnd => x & y,
            ReduceOp::BitOr => x | y,
            ReduceOp::BitXor => x ^ y,
            _ => wrap(dtype, x + y),
        }),
        _ => panic!("{dtype} decodes to one kind"),
    }
}

/// A value multiplied by a factor, and rounded to its type.
fn scaled(dtype: DType, value: Value, factor: f64) -> Value {
    match value {
        Value::Float(x) => {
            let product = round_step(dtype, x * round_step(dtype, factor));
            let bits = encode(dtype, Value::Float(product));
            decode(dtype, &bits.to_le_bytes()[..dtype.size()])
        }
        Value::Integer(x) => Value::Integer(wrap(dtype, x.wrapping_mul(factor as i128))),
    }
}

fn divide(dtype: DType, value: Value, divisor: u32) -> Value {
    match value {
        _ if divisor <= 1 || dtype == DType::Bool => value,
        // The divisor rounds to the type first; so does the kernel's.
        Value::Float(x) => {
            Value::Float(round_step(dtype, x / round_step(dtype, f64::from(divisor))))
        }
        Value::Integer(x) => Value::Integer(x / i128::from(divisor)),
    }
}

/// What a reduce is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub dtype: DType,
    pub op: ReduceOp,
    pub divisor: u32,
    /// Which source is multiplied, and by what.
    pub scale: Option<(usize, f64)>,
}

/// Bytes of the element that the elements `raws` of the sources become.
pub(super) fn expected(asked: Asked, raws: &[&[u8]]) -> Vec<u8> {
    let Asked { dtype, op, divisor, scale } = asked;
    let part = match dtype {
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        other => other,
    };
    let size = part.size();
    let parts = dtype.size() / size;
    // Sources, each a list of parts.
    let mut values: Vec<Vec<Value>> = raws
        .iter()
        .map(|raw| raw.chunks_exact(size).map(|raw| decode(part, raw)).collect())
        .collect();
    if let Some((source, factor)) = scale
        && let Some(value) = values.get_mut(source)
    {
        value.iter_mut().for_each(|value| *value = scaled(part, *value, factor));
    }
    let combined = values
        .into_iter()
        .reduce(|a, b| {
            if parts == 2 && op == ReduceOp::Prod {
                return complex_product(part, &a, &b);
            }
            a.into_iter().zip(b).map(|(a, b)| combine(part, op, a, b)).collect()
        })
        .expect("at least one source");
    combined
        .into_iter()
        .flat_map(|value| encode(part, divide(part, value, divisor)).to_le_bytes()[..size].to_vec())
        .collect()
}

fn complex_product(part: DType, a: &[Value], b: &[Value]) -> Vec<Value> {
    let product = |x, y| combine(part, ReduceOp::Prod, x, y);
    let negative = match product(a[1], b[1]) {
        Value::Float(x) => Value::Float(-x),
        Value::Integer(_) => panic!("complex numbers have floats"),
    };
    vec![
        combine(part, ReduceOp::Sum, product(a[0], b[0]), negative),
        combine(part, ReduceOp::Sum, product(a[0], b[1]), product(a[1], b[0])),
    ]
}
