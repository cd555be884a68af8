//! 8-bit floats, for numbers of the size that a run uses; by way of binary16.

use half::f16;

/// What is added to the exponent of an `e4m3` to make it that of a binary16, in place.
const REBIAS: u16 = 8 << 10;

/// The nearest `e4m3fn`; 0, or from 2^-6 to 448.
pub(crate) fn e4m3(value: f64) -> u8 {
    let bits = f16::from_f64(value).to_bits();
    let magnitude = bits & 0x7fff;
    let rounded = magnitude.saturating_sub(REBIAS).saturating_add(0x40) >> 7;
    (rounded as u8).min(0x7f) | (bits >> 8) as u8 & 0x80
}

/// The nearest `e5m2`.
pub(crate) fn e5m2(value: f64) -> u8 {
    let bits = f16::from_f64(value).to_bits();
    let rounded = ((bits & 0x7fff) + if value.is_finite() { 0x80 } else { 0 }) >> 8;
    let nan = if value.is_nan() { 2 } else { 0 };
    rounded as u8 | nan | (bits >> 8) as u8 & 0x80
}

/// The value of an `e4m3fn`.
pub(crate) fn of_e4m3(raw: u8) -> f64 {
    let magnitude = raw & 0x7f;
    let value = match magnitude {
        0x7f => f64::NAN,
        0..8 => f64::from(magnitude) / 512.0,
        _ => f16::from_bits((u16::from(magnitude) << 7) + REBIAS).to_f64(),
    };
    if raw & 0x80 == 0 { value } else { -value }
}

/// The value of an `e5m2`.
pub(crate) fn of_e5m2(raw: u8) -> f64 {
    f16::from_bits(u16::from(raw) << 8).to_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_whole_numbers_and_powers_of_two_come_back() {
        let numbers = (-8..=8).chain([10, 12, 14, 16, 32, 64, -256]).map(f64::from);
        for number in numbers.chain([0.5, 0.25]) {
            assert_eq!((of_e4m3(e4m3(number)), of_e5m2(e5m2(number))), (number, number));
        }
        assert_eq!((e4m3(1.0), e4m3(448.0), e5m2(1.0), e5m2(-57344.0)), (0x38, 0x7e, 0x3c, 0xfb));
        assert!(of_e4m3(e4m3(f64::NAN)).is_nan() && of_e4m3(e4m3(f64::INFINITY)).is_nan());
        assert!(of_e5m2(e5m2(f64::NAN)).is_nan() && of_e5m2(e5m2(f64::INFINITY)).is_infinite());
    }
}
