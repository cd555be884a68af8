//! The instruction sets of x86_64 processors.

use std::arch::x86_64::{
    _CMP_UNORD_Q, _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_blendv_ps,
    _mm256_cmp_ps, _mm256_cvtph_ps, _mm256_cvtps_ph, _mm256_loadu_ps, _mm256_loadu_si256,
    _mm256_set1_ps, _mm256_storeu_ps, _mm256_storeu_si256, _mm512_cmp_ps_mask, _mm512_cvtph_ps,
    _mm512_cvtps_ph, _mm512_loadu_ps, _mm512_mask_blend_ps, _mm512_set1_ps, _mm512_storeu_ps,
};

use super::combine::Combine;
use super::element::Element;
use super::fold;
use super::half::Half;
use super::isa::Isa;
use super::job::Job;
use super::number::Number;

/// AVX2 and F16C.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

/// AVX-512 F, BW and VL, and F16C.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx512(());

impl Avx2 {
    /// The instruction set, if this processor and its operating system have it.
    pub(super) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c");
        has.then_some(Self(()))
    }
}

impl Avx512 {
    /// The instruction set, if this processor and its operating system have it.
    pub(super) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl");
        (has && Avx2::detect().is_some()).then_some(Self(()))
    }
}

macro_rules! isa {
    ($isa:ident, $fold:ident, $scale:ident, $load_half:ident, $store_half:ident, $pair_half:ident, $features:literal) => {
        #[target_feature(enable = $features)]
        unsafe fn $fold<E: Element, C: Combine<E::Number>, const DIVIDE: bool>(
            isa: $isa,
            job: Job<'_>,
        ) {
            // SAFETY: the caller vouches for the job's pointers.
            unsafe { fold::fold::<$isa, E, C, DIVIDE>(isa, job) }
        }

        #[target_feature(enable = $features)]
        unsafe fn $scale<E: Element>(
            isa: $isa,
            dst: *mut u8,
            src: *const u8,
            count: usize,
            factor: f64,
        ) {
            // SAFETY: the caller vouches for the pointers.
            unsafe { fold::scale::<$isa, E>(isa, dst, src, count, factor) }
        }

        impl Isa for $isa {
            #[inline(always)]
            unsafe fn run<E: Element, C: Combine<E::Number>, const DIVIDE: bool>(
                self,
                job: Job<'_>,
            ) {
                // SAFETY:
                // - `self` proves that the processor has the features;
                // - the caller vouches for the job's pointers.
                unsafe { $fold::<E, C, DIVIDE>(self, job) }
            }

            #[inline(always)]
            unsafe fn scale<E: Element>(
                self,
                dst: *mut u8,
                src: *const u8,
                count: usize,
                factor: f64,
            ) {
                // SAFETY:
                // - `self` proves that the processor has the features;
                // - the caller vouches for the pointers.
                unsafe { $scale::<E>(self, dst, src, count, factor) }
            }

            #[inline(always)]
            unsafe fn pair_half<C: Combine<f32>, const DIVIDE: bool>(
                self,
                srcs: [*const u8; 2],
                job: Job<'_>,
            ) -> bool {
                // SAFETY:
                // - `self` proves that the processor has the features;
                // - the caller vouches for the pointers.
                unsafe { $pair_half::<C, DIVIDE>(srcs, job) }
                true
            }

            #[inline(always)]
            unsafe fn load_half(self, src: *const u16, numbers: *mut f32, count: usize) {
                // SAFETY:
                // - `self` proves that the processor has F16C;
                // - the caller vouches for the pointers.
                unsafe { $load_half(src, numbers, count) }
            }

            #[inline(always)]
            unsafe fn store_half(self, numbers: *const f32, dst: *mut u16, count: usize) {
                // SAFETY:
                // - `self` proves that the processor has F16C;
                // - the caller vouches for the pointers.
                unsafe { $store_half(numbers, dst, count) }
            }
        }
    };
}

isa!(Avx2, fold_avx2, scale_avx2, load_half_avx2, store_half_avx2, pair_half_avx2, "avx2,f16c");
isa!(
    Avx512,
    fold_avx512,
    scale_avx512,
    load_half_avx512,
    store_half_avx512,
    pair_half_avx512,
    "avx512f,avx512bw,avx512vl,avx2,f16c"
);

/// Widens binary16 values.
///
/// # Safety
/// As for [`Element::load`], and the processor has F16C.
#[inline]
#[target_feature(enable = "avx,f16c")]
unsafe fn load_half_avx2(src: *const u16, numbers: *mut f32, count: usize) {
    const LANES: usize = 8;
    let whole = count - count % LANES;
    // SAFETY: no access goes past `count`.
    unsafe {
        for pack in 0..count / LANES {
            let wide = _mm256_cvtph_ps(_mm_loadu_si128(src.add(pack * LANES).cast()));
            _mm256_storeu_ps(numbers.add(pack * LANES), wide);
        }
        for i in whole..count {
            numbers.add(i).write(Half::widen(src.add(i).read_unaligned()));
        }
    }
}

/// [`load_half_avx2`] for AVX-512.
///
/// # Safety
/// As for [`Element::load`], and the processor has AVX-512 F.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_half_avx512(src: *const u16, numbers: *mut f32, count: usize) {
    const LANES: usize = 16;
    let whole = count - count % LANES;
    // SAFETY: no access goes past `count`.
    unsafe {
        for pack in 0..count / LANES {
            let wide = _mm512_cvtph_ps(_mm256_loadu_si256(src.add(pack * LANES).cast()));
            _mm512_storeu_ps(numbers.add(pack * LANES), wide);
        }
        for i in whole..count {
            numbers.add(i).write(Half::widen(src.add(i).read_unaligned()));
        }
    }
}

/// Rounds to binary16 values, to nearest even whatever the thread's rounding mode is.
///
/// # Safety
/// As for [`Element::store`], and the processor has F16C.
#[inline]
#[target_feature(enable = "avx,f16c")]
unsafe fn store_half_avx2(numbers: *const f32, dst: *mut u16, count: usize) {
    const LANES: usize = 8;
    let whole = count - count % LANES;
    // SAFETY: no access goes past `count`.
    unsafe {
        for pack in 0..count / LANES {
            let wide = _mm256_loadu_ps(numbers.add(pack * LANES));
            let nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(wide, wide);
            let settled = _mm256_blendv_ps(wide, _mm256_set1_ps(f32::NAN), nan);
            let narrow = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(settled);
            _mm_storeu_si128(dst.add(pack * LANES).cast(), narrow);
        }
        for i in whole..count {
            dst.add(i).write_unaligned(Half::narrow(numbers.add(i).read()));
        }
    }
}

/// [`store_half_avx2`] for AVX-512.
///
/// # Safety
/// As for [`Element::store`], and the processor has AVX-512 F.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store_half_avx512(numbers: *const f32, dst: *mut u16, count: usize) {
    const LANES: usize = 16;
    let whole = count - count % LANES;
    // SAFETY: no access goes past `count`.
    unsafe {
        for pack in 0..count / LANES {
            let wide = _mm512_loadu_ps(numbers.add(pack * LANES));
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(wide, wide);
            let settled = _mm512_mask_blend_ps(nan, wide, _mm512_set1_ps(f32::NAN));
            let narrow = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(settled);
            _mm256_storeu_si256(dst.add(pack * LANES).cast(), narrow);
        }
        for i in whole..count {
            dst.add(i).write_unaligned(Half::narrow(numbers.add(i).read()));
        }
    }
}

macro_rules! pair_half {
    ($pair_half:ident, $lanes:literal, $load_half:ident, $store_half:ident, $features:literal) => {
        /// Combines binary16 values of two sources a register at a time.
        ///
        /// # Safety
        /// As for [`Element::pair`], and the processor has the features.
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn $pair_half<C: Combine<f32>, const DIVIDE: bool>(
            [a, b]: [*const u8; 2],
            job: Job<'_>,
        ) {
            const LANES: usize = $lanes;
            let (a, b, dst) = (a.cast::<u16>(), b.cast::<u16>(), job.dst.cast::<u16>());
            let whole = job.count - job.count % LANES;
            let by = f32::divisor(job.divisor);
            // SAFETY:
            // - no access goes past `count`;
            // - the result may be a source: what is read of it is read before it is written.
            unsafe {
                for pack in 0..job.count / LANES {
                    let at = pack * LANES;
                    let (mut x, mut y) = ([0.0_f32; LANES], [0.0_f32; LANES]);
                    $load_half(a.add(at), x.as_mut_ptr(), LANES);
                    $load_half(b.add(at), y.as_mut_ptr(), LANES);
                    for i in 0..LANES {
                        x[i] = C::combine(x[i], y[i]);
                        if DIVIDE {
                            x[i] = x[i].divided(by);
                        }
                    }
                    $store_half(x.as_ptr(), dst.add(at), LANES);
                }
                for i in whole..job.count {
                    let x = Half::widen(a.add(i).read_unaligned());
                    let y = Half::widen(b.add(i).read_unaligned());
                    let z = fold::finish::<Half, DIVIDE>(C::combine(x, y), by);
                    dst.add(i).write_unaligned(z);
                }
            }
        }
    };
}

pair_half!(pair_half_avx2, 8, load_half_avx2, store_half_avx2, "avx2,f16c");
pair_half!(
    pair_half_avx512,
    16,
    load_half_avx512,
    store_half_avx512,
    "avx512f,avx512bw,avx512vl,avx2,f16c"
);
