//! The kernels against arithmetic in f64 and i128, at every instruction set.

use ::half::{bf16, f16};
use proptest::prelude::*;
use stepccl_plan::{DType, ReduceOp};

use super::element::{Brain, Element};
use super::half::Half;
use super::minifloat::{E4M3, E5M2};
use super::{copy, copy_stream, levels, reduce, reduce_at, reduce_scaled, reduce_stream, scale_at};
use reference::{Asked, byte_value, expected, nearest_byte};

mod reference;

fn any_dtype() -> impl Strategy<Value = DType> {
    prop::sample::select(DType::ALL.to_vec())
}

/// A type and an operation that it has.
fn any_combination() -> impl Strategy<Value = (DType, ReduceOp)> {
    any_dtype().prop_flat_map(|dtype| {
        let ops: Vec<_> = ReduceOp::all_of(dtype).collect();
        (Just(dtype), prop::sample::select(ops))
    })
}

/// Counts around every pack and block, and some larger ones.
fn any_count() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0_usize..200, 1 => 500_usize..530, 1 => 1000_usize..5000]
}

/// Elements that stress rounding: random bits, near-equal magnitudes, and special values.
fn fill(seed: u64, dtype: DType, bytes: &mut [u8]) {
    let mut state = seed | 1;
    let mut random = || {
        // xorshift64*: enough for test data and quick without optimisation.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    let (size, exponent_bits, mantissa_bits) = match dtype {
        DType::F32 | DType::C64 => (4, 8, 23),
        DType::F64 | DType::C128 => (8, 11, 52),
        DType::F16 => (2, 5, 10),
        DType::Bf16 => (2, 8, 7),
        DType::F8E4M3 => (1, 4, 3),
        DType::F8E5M2 => (1, 5, 2),
        other => (other.size(), 0, 0),
    };
    let ones = ((1_u64 << exponent_bits) - 1) << mantissa_bits;
    for element in bytes.chunks_exact_mut(size) {
        let choice = random() >> 60;
        let bits = random();
        let sign = bits & (1 << (8 * size - 1));
        let mantissa = bits & ((1 << mantissa_bits) - 1);
        let bits = match choice {
            _ if exponent_bits == 0 => bits,
            0 => sign | ones,                                     // infinity
            1 => sign | ones | mantissa,                          // NaN of any payload
            2 => sign | mantissa,                                 // denormal or zero
            3 => sign,                                            // zero
            4 => sign | (ones - (1 << mantissa_bits)) | mantissa, // huge
            5..=9 => sign | ((ones >> 1) & ones) | mantissa,      // near one
            _ => bits,
        };
        element.copy_from_slice(&bits.to_le_bytes()[..size]);
    }
}

fn check(
    (dtype, op, divisor): (DType, ReduceOp, u32),
    (sources, count, shift): (usize, usize, usize),
    alias: Option<usize>,
    seed: u64,
) {
    let size = dtype.size();
    let bytes = count * size;
    let guard = 64;
    let inputs: Vec<Vec<u8>> = (0..sources)
        .map(|i| {
            let mut data = vec![0xa5; bytes + 2 * guard];
            // Every buffer begins at another alignment.
            let from = (shift + 7 * i) % guard;
            fill(seed.wrapping_add(i as u64 * 977), dtype, &mut data[from..from + bytes]);
            data
        })
        .collect();
    let start = |i: usize| (shift + 7 * i) % guard;
    let mut want = Vec::with_capacity(bytes);
    for e in 0..count {
        let raws: Vec<&[u8]> = (0..sources)
            .map(|i| &inputs[i][start(i) + e * size..start(i) + (e + 1) * size])
            .collect();
        if sources == 1 && divisor <= 1 {
            want.extend_from_slice(raws[0]);
        } else {
            want.extend(expected(Asked { dtype, op, divisor, scale: None }, &raws));
        }
    }
    for level in levels() {
        let mut data = inputs.clone();
        let mut result = vec![0x5a; bytes + 2 * guard];
        let at = alias.map_or((shift * 3) % guard, start);
        let dst = match alias {
            Some(i) => data[i].as_mut_ptr(),
            None => result.as_mut_ptr(),
        };
        let srcs: Vec<*const u8> = (0..sources)
            .map(|i| {
                let base = if alias == Some(i) { dst.cast_const() } else { data[i].as_ptr() };
                // SAFETY: `start` is within the guard before the data.
                unsafe { base.add(start(i)) }
            })
            .collect();
        // SAFETY: every buffer has `count` elements from its start on; `dst` is a source or apart.
        unsafe { reduce_at(level, dst.add(at), &srcs, count, dtype, op, divisor) };
        let got = alias.map_or(&result, |i| &data[i]);
        assert_eq!(
            got[at..at + bytes],
            want[..],
            "{level} {dtype} {op} / {divisor}, {count} elements of {sources} sources, {alias:?}"
        );
        let pattern = if alias.is_some() { 0xa5 } else { 0x5a };
        let outside = got[..at].iter().chain(&got[at + bytes..]);
        assert!(outside.copied().all(|byte| byte == pattern), "written outside of the result");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_level_equals_the_reference(
        (dtype, op) in any_combination(),
        divisor in prop_oneof![Just(1_u32), 2_u32..10, any::<u32>().prop_map(|d| d.max(1))],
        sources in 1_usize..10,
        count in any_count(),
        shift in 0_usize..64,
        alias in prop::option::of(0_usize..9),
        seed in any::<u64>(),
    ) {
        let alias = alias.filter(|i| *i < sources);
        check((dtype, op, divisor), (sources, count, shift), alias, seed);
    }
}

#[test]
fn every_type_and_operation_runs() {
    for dtype in DType::ALL {
        for op in ReduceOp::all_of(dtype) {
            for sources in if cfg!(miri) { 2..=3 } else { 1..=9 } {
                for alias in [None, Some(0), Some(sources - 1)] {
                    let divisor = if op == ReduceOp::Avg { sources as u32 } else { 1 };
                    check(
                        (dtype, op, divisor),
                        (sources, if cfg!(miri) { 9 } else { 131 }, sources),
                        alias,
                        42,
                    );
                }
            }
        }
    }
}

#[test]
fn every_short_count_and_alignment_is_right() {
    for dtype in DType::ALL {
        for count in 0..200 {
            check((dtype, ReduceOp::Sum, 1), (2, count, count), None, count as u64);
            let (op, divisor) =
                if dtype == DType::Bool { (ReduceOp::BitXor, 1) } else { (ReduceOp::Avg, 3) };
            check((dtype, op, divisor), (3, count, count / 3), Some(1), count as u64);
        }
        for shift in 0..64 {
            check((dtype, ReduceOp::Prod, 1), (2, 97, shift), Some(1), shift as u64);
        }
    }
}

#[test]
fn conversions_equal_those_of_the_half_crate() {
    for raw in 0..=u16::MAX {
        let wide = f16::from_bits(raw).to_f32();
        let ours = Half::widen(raw);
        assert!(ours.to_bits() == wide.to_bits() || (ours.is_nan() && wide.is_nan()), "{raw:#06x}");
        // Every upper half of an f32, with the lower halves that decide ties.
        for low in [0, 1, 0x0fff, 0x1000, 0x1001, 0x1fff, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff] {
            let value = f32::from_bits(u32::from(raw) << 16 | low);
            let (half, brain) = if value.is_nan() {
                (0x7e00, 0x7fc0)
            } else {
                (f16::from_f32(value).to_bits(), bf16::from_f32(value).to_bits())
            };
            assert_eq!(Half::narrow(value), half, "{value:e} as binary16");
            assert_eq!(Brain::narrow(value), brain, "{value:e} as bfloat16");
        }
    }
}

/// Every 16-bit float divided by 1 (as a maximum with itself), 2, 3 and 7: widened, rounded, and
/// between them the f32 quotient.
#[test]
fn every_level_converts_all_sixteen_bit_floats() {
    let all: Vec<u16> = (0..=u16::MAX).collect();
    for dtype in [DType::F16, DType::Bf16] {
        for (op, divisor) in
            [(ReduceOp::Max, 1), (ReduceOp::Avg, 2), (ReduceOp::Avg, 3), (ReduceOp::Avg, 7)]
        {
            let want: Vec<u16> = all
                .iter()
                .map(|raw| {
                    let raw = raw.to_le_bytes();
                    let raws = [&raw[..], &raw[..]];
                    let raws = &raws[..if divisor == 1 { 2 } else { 1 }];
                    let bytes = expected(Asked { dtype, op, divisor, scale: None }, raws);
                    u16::from_le_bytes([bytes[0], bytes[1]])
                })
                .collect();
            for level in levels() {
                let src = all.as_ptr().cast::<u8>();
                let srcs = [src, src];
                let srcs = &srcs[..if divisor == 1 { 2 } else { 1 }];
                let mut got = vec![0_u16; all.len()];
                let dst = got.as_mut_ptr().cast();
                // SAFETY: both vectors have as many elements; the result is apart.
                unsafe { reduce_at(level, dst, srcs, all.len(), dtype, op, divisor) };
                for ((got, want), raw) in got.iter().zip(&want).zip(&all) {
                    assert_eq!(got, want, "{level} {dtype} {raw:#06x} {op} / {divisor}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn streaming_changes_no_bit(
        (dtype, op) in any_combination(),
        sources in 1_usize..5,
        count in any_count(),
        shift in 0_usize..64,
        in_place in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let bytes = count * dtype.size();
        let mut inputs = vec![vec![0; bytes + 64]; sources];
        for (i, input) in inputs.iter_mut().enumerate() {
            fill(seed.wrapping_add(i as u64), dtype, &mut input[..bytes]);
        }
        let mut want = vec![0_u8; bytes];
        let srcs: Vec<*const u8> = inputs.iter().map(|input| input.as_ptr()).collect();
        // SAFETY: all have `bytes` bytes, and the result is apart.
        unsafe { reduce(want.as_mut_ptr(), &srcs, count, dtype, op, sources as u32) };

        let mut got = vec![0x5a_u8; bytes + 128];
        let mut copied = vec![0x5a_u8; bytes + 128];
        let at = shift;
        let dst = got.as_mut_ptr().wrapping_add(at);
        let mut srcs = srcs;
        // SAFETY: there is room for `bytes` bytes behind the shift; a source is the result or apart.
        unsafe {
            if in_place {
                copy(dst, inputs[0].as_ptr(), bytes);
                srcs[0] = dst;
            }
            reduce_stream(dst, &srcs, count, dtype, op, sources as u32);
            copy_stream(copied.as_mut_ptr().wrapping_add(at), inputs[0].as_ptr(), bytes);
        }
        prop_assert_eq!(&got[at..at + bytes], &want[..]);
        prop_assert_eq!(&copied[at..at + bytes], &inputs[0][..bytes]);
        for buffer in [got, copied] {
            let outside = buffer[..at].iter().chain(&buffer[at + bytes..]);
            prop_assert!(outside.copied().all(|byte| byte == 0x5a));
        }
    }
}

#[test]
fn conversions_of_bytes_equal_their_definition() {
    type Conversion = (DType, fn(u8) -> f32, fn(f32) -> u8);
    let conversions: [Conversion; 2] = [
        (DType::F8E4M3, <E4M3 as Element>::widen, <E4M3 as Element>::narrow),
        (DType::F8E5M2, <E5M2 as Element>::widen, <E5M2 as Element>::narrow),
    ];
    for (dtype, widen, narrow) in conversions {
        for raw in 0..=u8::MAX {
            let (wide, exact) = (f64::from(widen(raw)), byte_value(dtype, raw));
            assert!(
                wide.to_bits() == exact.to_bits() || (wide.is_nan() && exact.is_nan()),
                "{dtype} {raw:#04x}: {wide} and not {exact}"
            );
        }
        // Every upper half of an f32, with lower halves that decide ties.
        for upper in 0..=u16::MAX {
            for low in [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff] {
                let value = f32::from_bits(u32::from(upper) << 16 | low);
                let want = nearest_byte(dtype, f64::from(value));
                assert_eq!(narrow(value), want, "{value:e} as {dtype}");
            }
        }
    }
}

/// What torch makes of numbers around the largest ones.
#[test]
fn bytes_overflow_as_they_do_elsewhere() {
    for value in [448.0, 464.0, 464.1, 480.0, 1e30, f32::INFINITY] {
        assert_eq!(E4M3::narrow(value), 0x7e, "{value}");
        assert_eq!(E4M3::narrow(-value), 0xfe, "-{value}");
    }
    assert_eq!((E4M3::narrow(416.0), E4M3::narrow(f32::NAN)), (0x7d, 0x7f));
    for (value, code) in [(57344.0, 0x7b), (61439.0, 0x7b), (61440.0, 0x7c), (1e30, 0x7c)] {
        assert_eq!(E5M2::narrow(value), code, "{value}");
        assert_eq!(E5M2::narrow(-value), code | 0x80, "-{value}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_source_is_scaled_first(
        (dtype, op) in any_combination().prop_filter("has a product", |(dtype, _)| {
            ReduceOp::PremulSum.applies_to(*dtype)
        }),
        factor in prop_oneof![-9.0_f64..9.0, Just(0.0), Just(1.0), Just(-1e20)],
        sources in 1_usize..20,
        scaled in 0_usize..20,
        count in any_count(),
        in_place in any::<bool>(),
        seed in any::<u64>(),
    ) {
        // The reference knows whole factors of integers only.
        let whole = dtype.is_integer();
        let factor: f64 = if whole { factor.clamp(-9.0, 9.0).trunc() } else { factor };
        let (scaled, size) = (scaled % sources, dtype.size());
        let mut inputs = vec![vec![0; count * size]; sources];
        for (i, input) in inputs.iter_mut().enumerate() {
            fill(seed.wrapping_add(i as u64), dtype, input);
        }
        let asked = Asked { dtype, op, divisor: 1, scale: Some((scaled, factor)) };
        let want: Vec<u8> = (0..count)
            .flat_map(|i| {
                let raws: Vec<_> = inputs.iter().map(|data| &data[i * size..][..size]).collect();
                expected(asked, &raws)
            })
            .collect();
        let mut got = inputs[scaled].clone();
        let dst = got.as_mut_ptr();
        let mut srcs: Vec<*const u8> = inputs.iter().map(|input| input.as_ptr()).collect();
        if in_place {
            srcs[scaled] = dst;
        }
        if sources == 1 {
            for level in levels() {
                // SAFETY: both have `count` elements, and are one or apart.
                unsafe {
                    copy(dst, inputs[0].as_ptr(), count * size);
                    scale_at(level, dst, srcs[0], count, dtype, factor);
                }
                prop_assert_eq!(&got, &want, "{}", level);
            }
        } else {
            // SAFETY: all have `count` elements, and are the result or apart.
            unsafe { reduce_scaled(dst, &srcs, count, dtype, op, 1, (scaled, factor)) };
            prop_assert_eq!(&got, &want);
        }
    }

    #[test]
    fn long_integers_are_divided_exactly(
        value in prop_oneof![any::<u64>(), 0_u64..100, (0_u32..64, 0_u64..5).prop_map(|(bit, less)| {
            (1_u64 << bit).wrapping_sub(less)
        })],
        divisor in prop_oneof![2_u32..20, any::<u32>().prop_map(|d| d.max(2)), (1_u32..32).prop_map(|b| 1 << b)],
    ) {
        use super::number::Number;
        prop_assert_eq!(value.divided(u64::divisor(divisor)), value / u64::from(divisor));
        let signed = value as i64;
        prop_assert_eq!(signed.divided(i64::divisor(divisor)), signed / i64::from(divisor));
        let short = value as u32;
        prop_assert_eq!(short.divided(u32::divisor(divisor)), short / divisor);
        let byte = value as i8;
        prop_assert_eq!(
            i64::from(byte.divided(i8::divisor(divisor))),
            i64::from(byte) / i64::from(divisor)
        );
    }
}

#[test]
fn few_elements_are_summed_as_many_are() {
    for dtype in DType::ALL {
        for count in 0..=6 {
            for (seed, in_place) in
                (0..if cfg!(miri) { 2 } else { 200 }).flat_map(|seed| [(seed, false), (seed, true)])
            {
                let bytes = count * dtype.size();
                let mut sources = [vec![0; bytes + 1], vec![0; bytes + 1]];
                for (i, source) in sources.iter_mut().enumerate() {
                    fill(seed * 2 + i as u64, dtype, &mut source[1..]);
                }
                let (mut got, mut want) = (sources[0].clone(), vec![0; bytes]);
                let at = |data: &Vec<u8>| data.as_ptr().wrapping_add(1);
                let (a, b) = (at(&sources[0]), at(&sources[1]));
                let dst = got.as_mut_ptr().wrapping_add(1);
                let first = if in_place { dst.cast_const() } else { a };
                // SAFETY: all have `count` elements, and are the result or apart.
                unsafe {
                    let level = levels()[0];
                    reduce_at(level, want.as_mut_ptr(), &[a, b], count, dtype, ReduceOp::Sum, 1);
                    reduce(dst, &[first, b], count, dtype, ReduceOp::Sum, 1);
                }
                assert_eq!(got[1..], want[..], "{count} {dtype}");
            }
        }
    }
}

#[test]
fn no_source_leaves_the_result_alone() {
    let mut dst = [7_u8; 8];
    // SAFETY: the result has eight bytes.
    unsafe { reduce(dst.as_mut_ptr(), &[], 2, DType::F32, ReduceOp::Sum, 1) };
    assert_eq!(dst, [7; 8]);
}

#[test]
fn copy_moves_exactly_its_bytes() {
    let src: Vec<u8> = (0..=255).collect();
    for bytes in (0..=255).step_by(if cfg!(miri) { 17 } else { 1 }) {
        let mut dst = [0xee_u8; 256];
        // SAFETY: both have 256 bytes and are apart; then the two are one.
        unsafe {
            copy(dst.as_mut_ptr(), src.as_ptr(), bytes);
            let itself = dst.as_mut_ptr();
            copy(itself, itself.cast_const(), bytes);
        }
        assert_eq!(dst[..bytes], src[..bytes]);
        assert!(dst[bytes..].iter().all(|byte| *byte == 0xee));
    }
}
