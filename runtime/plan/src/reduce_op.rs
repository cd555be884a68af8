//! How the contributions of ranks are combined.

use std::fmt;

use crate::dtype::{DType, Kind};

/// Combination of the elements that the ranks contribute.
///
/// Which operations a type has, [`ReduceOp::applies_to`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReduceOp {
    /// Sum; integers wrap, of truth values it is "or".
    Sum,
    /// Product; integers wrap, of truth values it is "and".
    Prod,
    /// Largest; a NaN of any rank is the result, of truth values it is "or".
    Max,
    /// Smallest; a NaN of any rank is the result, of truth values it is "and".
    Min,
    /// Sum divided by the number of ranks; integers truncate towards zero.
    Avg,
    /// Sum of the inputs, each first multiplied by a factor that its rank gives, and rounded to
    /// the type.
    PremulSum,
    /// Bits that every rank has.
    BitAnd,
    /// Bits that any rank has.
    BitOr,
    /// Bits that an odd number of ranks have.
    BitXor,
}

impl ReduceOp {
    /// Every operation, in the order in which tables show them.
    pub const ALL: [Self; 9] = [
        Self::Sum,
        Self::Prod,
        Self::Max,
        Self::Min,
        Self::Avg,
        Self::PremulSum,
        Self::BitAnd,
        Self::BitOr,
        Self::BitXor,
    ];

    /// Whether elements of `dtype` can be combined so.
    ///
    /// | type | sum, prod | max, min | avg, premul_sum | bit operations |
    /// |---|---|---|---|---|
    /// | floats | yes | yes | yes | no |
    /// | integers | yes | yes | yes | yes |
    /// | bool | yes | yes | no | yes |
    /// | complex | yes | no | yes | no |
    #[must_use]
    pub const fn applies_to(self, dtype: DType) -> bool {
        match self {
            Self::Sum | Self::Prod => true,
            Self::Max | Self::Min => !matches!(dtype.kind(), Kind::Complex),
            Self::Avg | Self::PremulSum => !matches!(dtype.kind(), Kind::Truth),
            Self::BitAnd | Self::BitOr | Self::BitXor => {
                dtype.is_integer() || matches!(dtype.kind(), Kind::Truth)
            }
        }
    }

    /// Every operation that elements of `dtype` can be combined by, in the order of [`Self::ALL`].
    pub fn all_of(dtype: DType) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |op| op.applies_to(dtype))
    }

    /// Name as nccl-tests prints it, or in its manner.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Prod => "prod",
            Self::Max => "max",
            Self::Min => "min",
            Self::Avg => "avg",
            Self::PremulSum => "mulsum",
            Self::BitAnd => "band",
            Self::BitOr => "bor",
            Self::BitXor => "bxor",
        }
    }
}

impl fmt::Display for ReduceOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dtype: DType) -> Vec<&'static str> {
        ReduceOp::all_of(dtype).map(ReduceOp::name).collect()
    }

    #[test]
    fn every_type_has_its_operations() {
        for dtype in DType::ALL {
            let want: &[&str] = match dtype.kind() {
                Kind::Float => &["sum", "prod", "max", "min", "avg", "mulsum"],
                Kind::Signed | Kind::Unsigned => {
                    &["sum", "prod", "max", "min", "avg", "mulsum", "band", "bor", "bxor"]
                }
                Kind::Truth => &["sum", "prod", "max", "min", "band", "bor", "bxor"],
                Kind::Complex => &["sum", "prod", "avg", "mulsum"],
            };
            assert_eq!(names(dtype), want, "{dtype}");
        }
    }

    #[test]
    fn names_are_different() {
        let ops: std::collections::HashSet<_> = ReduceOp::ALL.map(ReduceOp::name).into();
        let types: std::collections::HashSet<_> = DType::ALL.map(DType::name).into();
        assert_eq!((ops.len(), types.len()), (ReduceOp::ALL.len(), DType::ALL.len()));
    }
}
