//! Arithmetic on the values that are combined.
//!
//! Every NaN that an operation makes or passes on becomes the one canonical NaN of its type (in
//! [`Number::settle`]), because which payload survives an addition depends on the order in which
//! the compiler hands the operands to the processor. So results have the same bits everywhere.

use std::ops::Sub;

use super::quotient::Quotient;

/// A value that sources are combined in: the element itself, or f32 for shorter floats.
pub(super) trait Number: Copy {
    /// A divisor made ready, so that what it costs is paid once for all elements.
    type Divisor: Copy;
    /// A factor made ready.
    type Factor: Copy;

    /// Sum; integers wrap.
    fn sum(self, other: Self) -> Self;
    /// Product; integers wrap.
    fn product(self, other: Self) -> Self;
    /// `divisor`, which is at least 1, made ready.
    fn divisor(divisor: u32) -> Self::Divisor;
    /// Quotient; integers truncate towards zero.
    fn divided(self, by: Self::Divisor) -> Self;
    /// `factor` rounded to the type, or truncated to a whole number for integers.
    fn factor(factor: f64) -> Self::Factor;
    /// Product with a factor; integers wrap.
    fn scaled(self, by: Self::Factor) -> Self;
    /// The value itself, or the canonical NaN for any NaN.
    fn settle(self) -> Self;
}

/// A number that is larger than another, or not.
pub(super) trait Ordered: Number {
    /// Larger value; a NaN wins, and +0 is larger than -0.
    fn larger(self, other: Self) -> Self;
    /// Smaller value; a NaN wins, and -0 is smaller than +0.
    fn smaller(self, other: Self) -> Self;
}

macro_rules! float_number {
    ($float:ty, |$value:ident| $converted:expr) => {
        impl Number for $float {
            type Divisor = Self;
            type Factor = Self;

            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                self + other
            }

            #[inline(always)]
            fn product(self, other: Self) -> Self {
                self * other
            }

            #[inline(always)]
            fn divisor(divisor: u32) -> Self {
                let $value = divisor;
                $converted
            }

            #[inline(always)]
            fn divided(self, by: Self) -> Self {
                self / by
            }

            #[inline(always)]
            fn factor(factor: f64) -> Self {
                factor as Self
            }

            #[inline(always)]
            fn scaled(self, by: Self) -> Self {
                self * by
            }

            #[inline(always)]
            fn settle(self) -> Self {
                if self.is_nan() { Self::NAN } else { self }
            }
        }

        impl Ordered for $float {
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
        }
    };
}

macro_rules! integer_number {
    ($($integer:ty),*) => {$(
        impl Number for $integer {
            type Divisor = <$integer as Quotient>::Divisor;
            type Factor = Self;

            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn product(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            #[inline(always)]
            fn divisor(divisor: u32) -> Self::Divisor {
                <Self as Quotient>::prepare(divisor)
            }

            #[inline(always)]
            fn divided(self, by: Self::Divisor) -> Self {
                self.quotient(by)
            }

            #[inline(always)]
            fn factor(factor: f64) -> Self {
                // All integers that an f64 holds exactly keep their lower bits.
                factor as i64 as Self
            }

            #[inline(always)]
            fn scaled(self, by: Self) -> Self {
                self.wrapping_mul(by)
            }

            #[inline(always)]
            fn settle(self) -> Self {
                self
            }
        }

        impl Ordered for $integer {
            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                self.max(other)
            }

            #[inline(always)]
            fn smaller(self, other: Self) -> Self {
                self.min(other)
            }
        }
    )*};
}

float_number!(f32, |d| d as f32);
float_number!(f64, |d| f64::from(d));
integer_number!(i8, u8, i32, u32, i64, u64);

/// A complex number: its real and its imaginary part.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Complex<F>([F; 2]);

impl<F: Number + Sub<Output = F>> Number for Complex<F> {
    type Divisor = F::Divisor;
    type Factor = F::Factor;

    #[inline(always)]
    fn sum(self, other: Self) -> Self {
        let (Self([a, b]), Self([c, d])) = (self, other);
        Self([a.sum(c), b.sum(d)])
    }

    #[inline(always)]
    fn product(self, other: Self) -> Self {
        let (Self([a, b]), Self([c, d])) = (self, other);
        Self([a.product(c) - b.product(d), a.product(d).sum(b.product(c))])
    }

    #[inline(always)]
    fn divisor(divisor: u32) -> F::Divisor {
        F::divisor(divisor)
    }

    #[inline(always)]
    fn divided(self, by: F::Divisor) -> Self {
        Self(self.0.map(|part| part.divided(by)))
    }

    #[inline(always)]
    fn factor(factor: f64) -> F::Factor {
        F::factor(factor)
    }

    #[inline(always)]
    fn scaled(self, by: F::Factor) -> Self {
        Self(self.0.map(|part| part.scaled(by)))
    }

    #[inline(always)]
    fn settle(self) -> Self {
        Self(self.0.map(F::settle))
    }
}
