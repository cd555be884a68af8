//! The ways in which two values become one.

use super::number::{Number, Ordered};

/// A combination of two values of type `N`.
pub(super) trait Combine<N> {
    /// Whether it is one instruction, so that the compiler finds the vectors in a few numbers.
    const SIMPLE: bool = false;

    /// Combines `a` and `b`, in this order; the other order gives the same bits.
    fn combine(a: N, b: N) -> N;
}

/// [`Number::sum`].
#[derive(Debug)]
pub(super) struct Sum;
/// [`Number::product`].
#[derive(Debug)]
pub(super) struct Product;
/// [`Ordered::larger`].
#[derive(Debug)]
pub(super) struct Larger;
/// [`Ordered::smaller`].
#[derive(Debug)]
pub(super) struct Smaller;
/// The bits that both bytes have.
#[derive(Debug)]
pub(super) struct And;
/// The bits that either byte has.
#[derive(Debug)]
pub(super) struct Or;
/// The bits that one byte has.
#[derive(Debug)]
pub(super) struct Xor;

impl<N: Number> Combine<N> for Sum {
    const SIMPLE: bool = true;

    #[inline(always)]
    fn combine(a: N, b: N) -> N {
        a.sum(b)
    }
}

impl<N: Number> Combine<N> for Product {
    const SIMPLE: bool = true;

    #[inline(always)]
    fn combine(a: N, b: N) -> N {
        a.product(b)
    }
}

impl<N: Ordered> Combine<N> for Larger {
    #[inline(always)]
    fn combine(a: N, b: N) -> N {
        a.larger(b)
    }
}

impl<N: Ordered> Combine<N> for Smaller {
    #[inline(always)]
    fn combine(a: N, b: N) -> N {
        a.smaller(b)
    }
}

impl Combine<u8> for And {
    #[inline(always)]
    fn combine(a: u8, b: u8) -> u8 {
        a & b
    }
}

impl Combine<u8> for Or {
    #[inline(always)]
    fn combine(a: u8, b: u8) -> u8 {
        a | b
    }
}

impl Combine<u8> for Xor {
    #[inline(always)]
    fn combine(a: u8, b: u8) -> u8 {
        a ^ b
    }
}
