//! What differs between instruction sets.

use super::combine::Combine;
use super::element::Element;
use super::fold;
use super::half::Half;
use super::job::Job;

/// An instruction set. A value of it proves that the processor has it.
pub(super) trait Isa: Copy {
    /// Runs [`fold::fold`] compiled for this instruction set.
    ///
    /// # Safety
    /// As for [`super::reduce`].
    unsafe fn run<E: Element, C: Combine<E::Number>, const DIVIDE: bool>(self, job: Job<'_>);

    /// Runs [`fold::scale`] compiled for this instruction set.
    ///
    /// # Safety
    /// As for [`super::scale`].
    unsafe fn scale<E: Element>(self, dst: *mut u8, src: *const u8, count: usize, factor: f64);

    /// [`Element::pair`] of [`Half`].
    ///
    /// # Safety
    /// As for [`Element::pair`].
    #[inline(always)]
    unsafe fn pair_half<C: Combine<f32>, const DIVIDE: bool>(
        self,
        srcs: [*const u8; 2],
        job: Job<'_>,
    ) -> bool {
        let _ = (srcs, job);
        false
    }

    /// [`Element::load`] of [`Half`].
    ///
    /// # Safety
    /// As for [`Element::load`].
    #[inline(always)]
    unsafe fn load_half(self, src: *const u16, numbers: *mut f32, count: usize) {
        for i in 0..count {
            // SAFETY: `i` is below `count`.
            unsafe { numbers.add(i).write(Half::widen(src.add(i).read_unaligned())) }
        }
    }

    /// [`Element::store`] of [`Half`].
    ///
    /// # Safety
    /// As for [`Element::store`].
    #[inline(always)]
    unsafe fn store_half(self, numbers: *const f32, dst: *mut u16, count: usize) {
        for i in 0..count {
            // SAFETY: `i` is below `count`.
            unsafe { dst.add(i).write_unaligned(Half::narrow(numbers.add(i).read())) }
        }
    }
}

/// What every processor of the target has: SSE2 on x86_64, Advanced SIMD on aarch64.
#[derive(Clone, Copy, Debug)]
pub(super) struct Baseline;

impl Isa for Baseline {
    unsafe fn run<E: Element, C: Combine<E::Number>, const DIVIDE: bool>(self, job: Job<'_>) {
        // SAFETY: the caller vouches for the job's pointers.
        unsafe { fold::fold::<Self, E, C, DIVIDE>(self, job) }
    }

    unsafe fn scale<E: Element>(self, dst: *mut u8, src: *const u8, count: usize, factor: f64) {
        // SAFETY: the caller vouches for the pointers.
        unsafe { fold::scale::<Self, E>(self, dst, src, count, factor) }
    }
}
