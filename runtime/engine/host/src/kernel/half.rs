//! binary16, and its way to f32 and back in integer and f32 arithmetic, for processors without conversions.
//!
//! Both directions choose between results instead of branching, so that they can be vectorised,
//! and neither depends on how the processor treats f32 denormals.

use super::element::Element;
use super::isa::Isa;
use super::job::Job;
use super::number::{Combine, Number};

/// 2^-14, the smallest normal binary16, as bits of an f32.
const SMALLEST_NORMAL: u32 = 113 << 23;
/// 2^16, above every finite binary16, as bits of an f32.
const TOO_LARGE: u32 = 143 << 23;
/// Added to an f32's bits, turns its exponent's bias into that of binary16.
const REBIAS: u32 = 112 << 23;
/// 0.5 as bits of an f32; its last place is worth 2^-24, the smallest binary16.
const ONE_HALF: u32 = 126 << 23;

/// IEEE 754 binary16, combined in f32.
#[derive(Debug)]
pub(super) struct Half;

impl Element for Half {
    type Raw = u16;
    type Number = f32;

    const DIRECT: bool = false;

    #[inline(always)]
    fn widen(raw: u16) -> f32 {
        let sign = u32::from(raw & 0x8000) << 16;
        let magnitude = u32::from(raw & 0x7fff) << 13;
        let normal = magnitude + REBIAS;
        // Infinity and NaN: the exponent must become all ones.
        let special = magnitude + 2 * REBIAS;
        // A denormal is m * 2^-24: give it the exponent of 2^-14, then take away that 2^-14.
        let raised = f32::from_bits(magnitude + SMALLEST_NORMAL);
        let denormal = (raised - f32::from_bits(SMALLEST_NORMAL)).to_bits();
        let upper = if magnitude >= 0x7c00 << 13 { special } else { normal };
        let bits = if magnitude < 0x0400 << 13 { denormal } else { upper };
        f32::from_bits(bits | sign)
    }

    #[inline(always)]
    fn narrow(number: f32) -> u16 {
        // The canonical NaN has no sign.
        let bits = number.settle().to_bits();
        let sign = (bits >> 16) & 0x8000;
        let magnitude = bits & 0x7fff_ffff;
        // Half a unit of the last place kept, less one bit where that place is even.
        let odd = (magnitude >> 13) & 1;
        let normal = magnitude.wrapping_sub(REBIAS).wrapping_add(0xfff + odd) >> 13;
        // Adding 0.5 makes the f32 addition round at 2^-24, which leaves the denormal's bits.
        let lifted = f32::from_bits(magnitude) + f32::from_bits(ONE_HALF);
        let denormal = lifted.to_bits().wrapping_sub(ONE_HALF);
        let special = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
        let upper = if magnitude >= TOO_LARGE { special } else { normal };
        let rounded = if magnitude < SMALLEST_NORMAL { denormal } else { upper };
        (rounded | sign) as u16
    }

    #[inline(always)]
    unsafe fn pair<I: Isa, C: Combine, const DIVIDE: bool>(
        isa: I,
        srcs: [*const u8; 2],
        job: Job<'_>,
    ) -> bool {
        // SAFETY: the caller vouches for the pointers.
        unsafe { C::SIMPLE && isa.pair_half::<C, DIVIDE>(srcs, job) }
    }

    #[inline(always)]
    unsafe fn load<I: Isa>(isa: I, src: *const u16, numbers: *mut f32, count: usize) {
        // SAFETY: the caller vouches for the pointers.
        unsafe { isa.load_half(src, numbers, count) }
    }

    #[inline(always)]
    unsafe fn store<I: Isa>(isa: I, numbers: *const f32, dst: *mut u16, count: usize) {
        // SAFETY: the caller vouches for the pointers.
        unsafe { isa.store_half(numbers, dst, count) }
    }
}
