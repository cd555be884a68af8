//! Arithmetic on the values that are combined.
//!
//! Every NaN that an operation makes or passes on becomes the one canonical NaN of its type (in
//! [`Number::settle`]), because which payload survives an addition depends on the order in which
//! the compiler hands the operands to the processor. So results have the same bits everywhere.

/// A value that sources are combined in: the element itself, or f32 for 16-bit floats.
pub(super) trait Number: Copy {
    /// Sum; integers wrap.
    fn sum(self, other: Self) -> Self;
    /// Larger value; a NaN wins, and +0 is larger than -0.
    fn larger(self, other: Self) -> Self;
    /// Smaller value; a NaN wins, and -0 is smaller than +0.
    fn smaller(self, other: Self) -> Self;
    /// Quotient; integers truncate towards zero. `divisor` is at least 1.
    fn divided(self, divisor: u32) -> Self;
    /// The value itself, or the canonical NaN for any NaN.
    fn settle(self) -> Self;
}

/// A combination of two values.
pub(super) trait Combine {
    /// Whether it is one instruction, so that the compiler finds the vectors in a few numbers.
    const SIMPLE: bool = false;

    /// Combines `a` and `b`, in this order.
    fn combine<N: Number>(a: N, b: N) -> N;
}

/// [`Number::sum`].
#[derive(Debug)]
pub(super) struct Sum;
/// [`Number::larger`].
#[derive(Debug)]
pub(super) struct Larger;
/// [`Number::smaller`].
#[derive(Debug)]
pub(super) struct Smaller;

impl Combine for Sum {
    const SIMPLE: bool = true;

    #[inline(always)]
    fn combine<N: Number>(a: N, b: N) -> N {
        a.sum(b)
    }
}

impl Combine for Larger {
    #[inline(always)]
    fn combine<N: Number>(a: N, b: N) -> N {
        a.larger(b)
    }
}

impl Combine for Smaller {
    #[inline(always)]
    fn combine<N: Number>(a: N, b: N) -> N {
        a.smaller(b)
    }
}

macro_rules! float_number {
    ($float:ty, |$divisor:ident| $converted:expr) => {
        impl Number for $float {
            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                self + other
            }

            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                // Equal values differ at most in the sign of a zero, which `&` makes positive.
                let equal = Self::from_bits(self.to_bits() & other.to_bits());
                let second = if other > self { other } else { equal };
                let larger = if self > other { self } else { second };
                if self.is_nan() | other.is_nan() { Self::NAN } else { larger }
            }

            #[inline(always)]
            fn smaller(self, other: Self) -> Self {
                // Equal values differ at most in the sign of a zero, which `|` makes negative.
                let equal = Self::from_bits(self.to_bits() | other.to_bits());
                let second = if other < self { other } else { equal };
                let smaller = if self < other { self } else { second };
                if self.is_nan() | other.is_nan() { Self::NAN } else { smaller }
            }

            #[inline(always)]
            fn divided(self, divisor: u32) -> Self {
                let $divisor = divisor;
                self / $converted
            }

            #[inline(always)]
            fn settle(self) -> Self {
                if self.is_nan() { Self::NAN } else { self }
            }
        }
    };
}

macro_rules! integer_number {
    ($integer:ty, |$value:ident, $divisor:ident| $quotient:expr) => {
        impl Number for $integer {
            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                self.max(other)
            }

            #[inline(always)]
            fn smaller(self, other: Self) -> Self {
                self.min(other)
            }

            #[inline(always)]
            fn divided(self, divisor: u32) -> Self {
                let ($value, $divisor) = (self, divisor);
                $quotient
            }

            #[inline(always)]
            fn settle(self) -> Self {
                self
            }
        }
    };
}

float_number!(f32, |d| d as f32);
float_number!(f64, |d| f64::from(d));
// Processors divide vectors of floats, not of integers, and the compiler vectorises neither an
// integer division nor a checked conversion from float.
integer_number!(u8, |a, d| {
    // With m = ceil(2^16 / d), m * d exceeds 2^16 by less than d. So a * m / 2^16 exceeds a / d by
    // less than a / 2^16 < 1 / d for d < 256, too little to reach the next integer; and for larger
    // d, m is at most 2^8, so that a * m stays below 2^16.
    let m = (1_u32 << 16).div_ceil(d);
    ((u32::from(a) * m) >> 16) as u8
});
integer_number!(i32, |a, d| {
    // An f64 holds both exactly. A quotient that is no integer is at least 1/d away from one, thus
    // 1/a of itself: far more than the rounding of the f64 can move it.
    let quotient = f64::from(a) / f64::from(d);
    // SAFETY: the quotient is finite and, with d at least 1, no further from 0 than an i32 is.
    unsafe { quotient.to_int_unchecked() }
});
integer_number!(i64, |a, d| a / i64::from(d));
