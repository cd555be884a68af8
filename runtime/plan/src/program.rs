//! What one rank runs: the steps of a round, and what they need.

use crate::{DType, Step};

/// Granularity of part boundaries in bytes: one cache line.
pub const GRAIN_BYTES: usize = 64;

/// Most flags of a rank, in a program and in an engine.
pub const MAX_FLAGS: u32 = 1 << 16;

/// The steps of one rank for one collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Rank that runs it.
    pub rank: u32,
    /// Steps of one round, in order.
    pub steps: Vec<Step>,
    /// Parts a page is cut into; at least 1 and the same for every rank of the plan.
    pub parts: u32,
    /// Staging areas of one page each that a round needs in every rank; the same for every rank.
    pub areas: u32,
    /// Flags used, `0 .. flags`; the same for every rank.
    pub flags: u32,
}

/// First element of part `index` of `parts`, in a page of `len` elements.
///
/// Parts are multiples of [`GRAIN_BYTES`] except where the page ends; `boundary(parts)` is `len`.
/// With few elements, the last parts are empty.
#[must_use]
pub fn boundary(index: u32, parts: u32, len: usize, dtype: DType) -> usize {
    let grain = GRAIN_BYTES / dtype.size();
    let even = len.div_ceil(parts as usize).next_multiple_of(grain);
    even.saturating_mul(index as usize).min(len)
}
