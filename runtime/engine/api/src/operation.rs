//! What is submitted and what comes back.

use stepccl_plan::{DType, ReduceOp};

use crate::{Address, EngineError};

/// One thing to do.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// Copy `bytes` from `src` to `dst`; the ranges must not overlap.
    Copy {
        /// First byte read.
        src: Address,
        /// First byte written.
        dst: Address,
        /// Number of bytes.
        bytes: u64,
    },
    /// Combine `count` elements of all `srcs`, in that order, into `dst`. `dst` may equal one of
    /// `srcs`; otherwise the ranges must not overlap. Floats shorter than f32 are combined in it
    /// and rounded once. Nothing need be aligned.
    Reduce {
        /// First element of each source; at least one.
        srcs: &'a [Address],
        /// First element of the result.
        dst: Address,
        /// Number of elements.
        count: u64,
        /// Their type.
        dtype: DType,
        /// How they are combined, which must apply to the type; `Avg` and `PremulSum` combine
        /// like `Sum`.
        op: ReduceOp,
        /// Divide the result by this; 1 where nothing is to be divided. Integers truncate.
        divisor: u32,
        /// Multiply one source by a factor first, with the same bits as if the product had been
        /// written to memory and was the source.
        scale: Option<Scale>,
    },
}

/// A source that is multiplied before it is combined.
///
/// Floats shorter than f32 are multiplied in it and rounded once to their type. Integers are
/// multiplied by the factor truncated to a whole number, and wrap. Both parts of a complex number
/// are multiplied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Which of the sources, from 0; a number that none has multiplies nothing.
    pub source: u32,
    /// What it is multiplied by.
    pub factor: f64,
}

/// Number of an operation in progress, unique within its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(pub u64);

/// What became of a submission that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a full engine must be asked again"]
pub enum Submission {
    /// Done: the bytes are where they should be.
    Done,
    /// A channel works on it; `reap` will return the token.
    InProgress(Token),
    /// Nothing was started: no room now. Try again after a `reap` or `park`.
    Full,
}

/// End of an operation that was in progress.
#[derive(Clone, Debug)]
pub struct Completion {
    /// Which operation.
    pub token: Token,
    /// Bytes moved, or what went wrong.
    pub result: Result<u64, EngineError>,
}
