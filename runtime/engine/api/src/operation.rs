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
    /// `srcs`; otherwise the ranges must not overlap. 16-bit floats are combined in f32 and
    /// rounded once.
    Reduce {
        /// First element of each source; at least one.
        srcs: &'a [Address],
        /// First element of the result.
        dst: Address,
        /// Number of elements.
        count: u64,
        /// Their type.
        dtype: DType,
        /// How they are combined; `Avg` combines like `Sum`.
        op: ReduceOp,
        /// Divide the result by this; 1 where nothing is to be divided. Integers truncate.
        divisor: u32,
    },
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
