//! Elements as they lie in memory, and the numbers they are combined in.

use super::combine::Combine;
use super::isa::Isa;
use super::job::Job;
use super::number::{Complex, Number};

/// An element type of messages.
pub(super) trait Element {
    /// Its bits in memory; any pattern is valid.
    type Raw: Copy;
    /// What elements are combined in.
    type Number: Number;

    /// Whether conversions are cheap in the midst of a loop over single elements. If not,
    /// [`Self::load`] and [`Self::store`] are better.
    const DIRECT: bool = true;

    /// The number an element stands for; exact.
    fn widen(raw: Self::Raw) -> Self::Number;

    /// The nearest element, ties to even; a NaN becomes the canonical one.
    fn narrow(number: Self::Number) -> Self::Raw;

    /// Runs a job of two sources in registers, or answers false and leaves it to the blocks.
    /// Called only where [`Self::DIRECT`] is false.
    ///
    /// # Safety
    /// As for [`super::reduce`]; `srcs` are the job's.
    #[inline(always)]
    unsafe fn pair<I: Isa, C: Combine<Self::Number>, const DIVIDE: bool>(
        isa: I,
        srcs: [*const u8; 2],
        job: Job<'_>,
    ) -> bool {
        let _ = (isa, srcs, job);
        false
    }

    /// Widens `count` elements of `src` to `numbers`.
    ///
    /// # Safety
    /// `src` is valid for reads and `numbers` for writes of `count` each; `numbers` is aligned and
    /// nobody else's.
    #[inline(always)]
    unsafe fn load<I: Isa>(
        isa: I,
        src: *const Self::Raw,
        numbers: *mut Self::Number,
        count: usize,
    ) {
        let _ = isa;
        for i in 0..count {
            // SAFETY: `i` is below `count`.
            unsafe { numbers.add(i).write(Self::widen(src.add(i).read_unaligned())) }
        }
    }

    /// Narrows `count` of `numbers` to the elements of `dst`.
    ///
    /// # Safety
    /// `numbers` is valid for reads and `dst` for writes of `count` each; `numbers` is aligned and
    /// nobody else's.
    #[inline(always)]
    unsafe fn store<I: Isa>(
        isa: I,
        numbers: *const Self::Number,
        dst: *mut Self::Raw,
        count: usize,
    ) {
        let _ = isa;
        for i in 0..count {
            // SAFETY: `i` is below `count`.
            unsafe { dst.add(i).write_unaligned(Self::narrow(numbers.add(i).read())) }
        }
    }
}

macro_rules! plain_element {
    ($($number:ty),*) => {$(
        impl Element for $number {
            type Raw = Self;
            type Number = Self;

            #[inline(always)]
            fn widen(raw: Self) -> Self {
                raw
            }

            #[inline(always)]
            fn narrow(number: Self) -> Self {
                number.settle()
            }
        }
    )*};
}

plain_element!(f32, f64, i8, u8, i32, u32, i64, u64, Complex<f32>, Complex<f64>);

/// A byte that is true or false, combined as 0 or 1.
#[derive(Debug)]
pub(super) struct Truth;

impl Element for Truth {
    type Raw = u8;
    type Number = u8;

    #[inline(always)]
    fn widen(raw: u8) -> u8 {
        u8::from(raw != 0)
    }

    #[inline(always)]
    fn narrow(number: u8) -> u8 {
        number
    }
}

/// bfloat16, combined in f32.
#[derive(Debug)]
pub(super) struct Brain;

impl Element for Brain {
    type Raw = u16;
    type Number = f32;

    #[inline(always)]
    fn widen(raw: u16) -> f32 {
        f32::from_bits(u32::from(raw) << 16)
    }

    #[inline(always)]
    fn narrow(number: f32) -> u16 {
        let bits = number.settle().to_bits();
        // Half a unit of the last place kept, less one bit where that place is even: ties go to
        // even, and a carry out of the largest finite value gives infinity. The canonical NaN has
        // zeros below, so it passes unchanged.
        let odd = (bits >> 16) & 1;
        (bits.wrapping_add(0x7fff + odd) >> 16) as u16
    }
}
