//! binary16, combined in f32.

use super::combine::Combine;
use super::element::Element;
use super::isa::Isa;
use super::job::Job;
use super::minifloat::Binary16;

/// IEEE 754 binary16, combined in f32.
#[derive(Debug)]
pub(super) struct Half;

impl Element for Half {
    type Raw = u16;
    type Number = f32;

    const DIRECT: bool = false;

    #[inline(always)]
    fn widen(raw: u16) -> f32 {
        Binary16::widen(u32::from(raw))
    }

    #[inline(always)]
    fn narrow(number: f32) -> u16 {
        Binary16::narrow(number) as u16
    }

    #[inline(always)]
    unsafe fn pair<I: Isa, C: Combine<f32>, const DIVIDE: bool>(
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
