//! Numbers that a simulated communicator combines.

use std::fmt;

use stepccl_plan::{DType, ReduceOp};

/// A type of element.
pub trait Element: Copy + PartialEq + fmt::Debug {
    /// Its name in plans.
    const DTYPE: DType;
    /// What unwritten staging and output hold.
    const GARBAGE: Self;

    /// Two elements combined; [`ReduceOp::Avg`] and [`ReduceOp::PremulSum`] add.
    ///
    /// # Panics
    ///
    /// Where the operation does not apply to the type.
    #[must_use]
    fn combine(self, other: Self, op: ReduceOp) -> Self;

    /// An element divided among so many ranks.
    #[must_use]
    fn divide(self, ranks: u32) -> Self;
}

impl Element for f64 {
    const DTYPE: DType = DType::F64;
    const GARBAGE: Self = -7.25e300;

    fn combine(self, other: Self, op: ReduceOp) -> Self {
        match op {
            ReduceOp::Sum | ReduceOp::Avg | ReduceOp::PremulSum => self + other,
            ReduceOp::Prod => self * other,
            ReduceOp::Max => self.max(other),
            ReduceOp::Min => self.min(other),
            _ => panic!("{op} of {}: there is no such combination", Self::DTYPE),
        }
    }

    fn divide(self, ranks: u32) -> Self {
        self / Self::from(ranks)
    }
}

impl Element for i64 {
    const DTYPE: DType = DType::I64;
    const GARBAGE: Self = -0x5555_5555_5555_5555;

    fn combine(self, other: Self, op: ReduceOp) -> Self {
        match op {
            ReduceOp::Sum | ReduceOp::Avg | ReduceOp::PremulSum => self.wrapping_add(other),
            ReduceOp::Prod => self.wrapping_mul(other),
            ReduceOp::Max => self.max(other),
            ReduceOp::Min => self.min(other),
            ReduceOp::BitAnd => self & other,
            ReduceOp::BitOr => self | other,
            ReduceOp::BitXor => self ^ other,
            _ => panic!("{op} of {}: there is no such combination", Self::DTYPE),
        }
    }

    fn divide(self, ranks: u32) -> Self {
        self / Self::from(ranks)
    }
}
