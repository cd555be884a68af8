//! Integer division by one divisor, many times.
//!
//! Processors divide vectors of floats, not of integers, and the compiler vectorises neither an
//! integer division nor a checked conversion from float. So short integers are divided as floats
//! that hold them exactly, and long ones by a multiplication.

/// An integer that can be divided, truncating towards zero.
pub(super) trait Quotient {
    /// The divisor made ready.
    type Divisor: Copy;

    /// Makes `divisor` ready, which is at least 1.
    fn prepare(divisor: u32) -> Self::Divisor;

    /// The quotient.
    fn quotient(self, by: Self::Divisor) -> Self;
}

impl Quotient for u8 {
    /// m = ceil(2^16 / d).
    type Divisor = u32;

    #[inline(always)]
    fn prepare(divisor: u32) -> u32 {
        (1_u32 << 16).div_ceil(divisor)
    }

    #[inline(always)]
    fn quotient(self, m: u32) -> Self {
        // m * d exceeds 2^16 by less than d. So a * m / 2^16 exceeds a / d by less than
        // a / 2^16 < 1 / d for d < 256, too little to reach the next integer; and for larger d, m
        // is at most 2^8, so that a * m stays below 2^16.
        ((u32::from(self) * m) >> 16) as Self
    }
}

/// Quotients by way of a float that holds the integer exactly. A quotient that is no integer is at
/// least 1/d away from one, thus 1/a of itself: far more than the rounding of the float can move
/// it.
macro_rules! float_quotient {
    ($integer:ty, $float:ty, $wide:ty, |$d:ident| $divisor:expr) => {
        impl Quotient for $integer {
            type Divisor = $float;

            #[inline(always)]
            fn prepare($d: u32) -> $float {
                $divisor
            }

            #[inline(always)]
            fn quotient(self, by: $float) -> Self {
                let quotient = <$float>::from(self) / by;
                // SAFETY: the quotient is finite and, with a divisor of at least 1, no further
                // from 0 than the integer is.
                let whole: $wide = unsafe { quotient.to_int_unchecked() };
                whole as Self
            }
        }
    };
}

// A divisor that an f32 does not hold exactly is larger than any i8, and the quotient 0.
float_quotient!(i8, f32, i32, |d| d as f32);
float_quotient!(i32, f64, i32, |d| f64::from(d));
float_quotient!(u32, f64, i64, |d| f64::from(d));

/// A divisor of 64-bit integers, as what it is multiplied by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reciprocal {
    /// m - 2^64, where value * m / 2^(64 + shift) is the quotient.
    low: u64,
    /// The shift in two parts, the first one at most 1.
    shifts: [u32; 2],
}

impl Reciprocal {
    /// The reciprocal of `divisor`, at least 1.
    #[inline]
    fn new(divisor: u32) -> Self {
        // With l = ceil(log2 d) and m = floor(2^(64 + l) / d) + 1, m * d exceeds 2^(64 + l) by
        // more than 0 and at most d <= 2^l. So a * m / 2^(64 + l) exceeds a / d by at most
        // a / (d * 2^64) < 1 / d, too little to reach the next integer. And 2^64 < m < 2^65.
        let l = u64::from(divisor).next_power_of_two().trailing_zeros();
        let m = (1_u128 << (64 + l)) / u128::from(divisor) + 1;
        Self { low: m as u64, shifts: [l.min(1), l.saturating_sub(1)] }
    }

    /// `value` / divisor.
    #[inline(always)]
    fn divide(self, value: u64) -> u64 {
        // value * m / 2^64 is value + high, which may have 65 bits: the first shift comes before
        // the addition. `high` is at most `value`.
        let high = ((u128::from(value) * u128::from(self.low)) >> 64) as u64;
        (((value - high) >> self.shifts[0]) + high) >> self.shifts[1]
    }
}

impl Quotient for u64 {
    type Divisor = Reciprocal;

    #[inline(always)]
    fn prepare(divisor: u32) -> Reciprocal {
        Reciprocal::new(divisor)
    }

    #[inline(always)]
    fn quotient(self, by: Reciprocal) -> Self {
        by.divide(self)
    }
}

impl Quotient for i64 {
    type Divisor = Reciprocal;

    #[inline(always)]
    fn prepare(divisor: u32) -> Reciprocal {
        Reciprocal::new(divisor)
    }

    #[inline(always)]
    fn quotient(self, by: Reciprocal) -> Self {
        let quotient = by.divide(self.unsigned_abs()) as Self;
        if self < 0 { quotient.wrapping_neg() } else { quotient }
    }
}
