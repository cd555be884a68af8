//! Floats shorter than f32, and their way to it and back in integer and f32 arithmetic.
//!
//! Both directions choose between results instead of branching, so that they can be vectorised,
//! and neither depends on how the processor treats f32 denormals.

use super::element::Element;
use super::number::Number;

/// A binary format of one sign bit, `EXPONENT` bits of exponent and `FRACTION` bits of fraction.
///
/// Where it is `FINITE` it has no infinities: the largest exponent is one like the others, and
/// only the pattern of all ones is a NaN. Otherwise it is as IEEE 754 has it.
#[derive(Debug)]
pub(super) struct Minifloat<const EXPONENT: u32, const FRACTION: u32, const FINITE: bool>;

/// IEEE 754 binary16.
pub(super) type Binary16 = Minifloat<5, 10, false>;
/// 8 bits with the exponent of binary16.
pub(super) type E5M2 = Minifloat<5, 2, false>;
/// 8 bits without infinities.
pub(super) type E4M3 = Minifloat<4, 3, true>;

impl<const EXPONENT: u32, const FRACTION: u32, const FINITE: bool>
    Minifloat<EXPONENT, FRACTION, FINITE>
{
    const BIAS: u32 = (1 << (EXPONENT - 1)) - 1;
    /// Bits of fraction that an f32 has more.
    const SHIFT: u32 = 23 - FRACTION;
    /// All bits but the sign.
    const MAGNITUDE: u32 = (1 << (EXPONENT + FRACTION)) - 1;
    /// Added to an f32's bits, turns its exponent's bias into that of the format.
    const REBIAS: u32 = (127 - Self::BIAS) << 23;
    /// The smallest normal number, as bits of an f32.
    const SMALLEST_NORMAL: u32 = (128 - Self::BIAS) << 23;
    /// The f32 whose last place is worth the smallest denormal, as bits.
    const LIFT: u32 = (127 + 24 - Self::BIAS - FRACTION) << 23;
    /// The smallest power of two above every finite number, as bits of an f32.
    const TOO_LARGE: u32 = (128 + Self::BIAS + FINITE as u32) << 23;
    /// The smallest pattern that is no finite number.
    const SPECIAL: u32 =
        if FINITE { Self::MAGNITUDE } else { Self::MAGNITUDE ^ ((1 << FRACTION) - 1) };
    const NAN: u32 = if FINITE { Self::MAGNITUDE } else { Self::SPECIAL | 1 << (FRACTION - 1) };

    /// The number that a pattern stands for; exact.
    #[inline(always)]
    pub(super) fn widen(raw: u32) -> f32 {
        let sign = (raw & (Self::MAGNITUDE + 1)) << (31 - EXPONENT - FRACTION);
        let magnitude = (raw & Self::MAGNITUDE) << Self::SHIFT;
        let normal = magnitude + Self::REBIAS;
        // Infinity and NaN: the exponent must become all ones.
        let special = if FINITE { f32::NAN.to_bits() } else { magnitude + 2 * Self::REBIAS };
        // A denormal: give it the exponent of the smallest normal number, then take that away.
        let raised = f32::from_bits(magnitude + Self::SMALLEST_NORMAL);
        let denormal = (raised - f32::from_bits(Self::SMALLEST_NORMAL)).to_bits();
        let upper = if magnitude >= Self::SPECIAL << Self::SHIFT { special } else { normal };
        let bits = if magnitude < 1 << 23 { denormal } else { upper };
        f32::from_bits(bits | sign)
    }

    /// The nearest number, ties to even; too large a one becomes infinity or, where there is none,
    /// the largest number, and a NaN the canonical one.
    #[inline(always)]
    pub(super) fn narrow(number: f32) -> u32 {
        // The canonical NaN has no sign.
        let bits = number.settle().to_bits();
        let sign = (bits >> (31 - EXPONENT - FRACTION)) & (Self::MAGNITUDE + 1);
        let magnitude = bits & 0x7fff_ffff;
        // Half a unit of the last place kept, less one bit where that place is even.
        let odd = (magnitude >> Self::SHIFT) & 1;
        let half = (1 << (Self::SHIFT - 1)) - 1;
        let normal = magnitude.wrapping_sub(Self::REBIAS).wrapping_add(half + odd) >> Self::SHIFT;
        // The f32 addition rounds at the smallest denormal, which leaves the denormal's bits.
        let lifted = f32::from_bits(magnitude) + f32::from_bits(Self::LIFT);
        let denormal = lifted.to_bits().wrapping_sub(Self::LIFT);
        let special = if magnitude > 0x7f80_0000 { Self::NAN } else { Self::SPECIAL };
        let upper = if magnitude >= Self::TOO_LARGE { special } else { normal };
        let rounded = if magnitude < Self::SMALLEST_NORMAL { denormal } else { upper };
        // The largest number stands for all beyond it where there is no infinity.
        let caps = FINITE && magnitude <= 0x7f80_0000;
        (if caps { rounded.min(Self::SPECIAL - 1) } else { rounded }) | sign
    }
}

macro_rules! byte_element {
    ($float:ty) => {
        impl Element for $float {
            type Raw = u8;
            type Number = f32;

            #[inline(always)]
            fn widen(raw: u8) -> f32 {
                <$float>::widen(u32::from(raw))
            }

            #[inline(always)]
            fn narrow(number: f32) -> u8 {
                <$float>::narrow(number) as u8
            }
        }
    };
}

byte_element!(E5M2);
byte_element!(E4M3);
