//! Element types of collectives.

use std::fmt;

/// Type of one element of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// IEEE 754 binary16; adds in f32 and rounds once to nearest even.
    F16,
    /// bfloat16; adds in f32 and rounds once to nearest even.
    Bf16,
    /// Signed 32-bit integer; sums wrap.
    I32,
    /// Signed 64-bit integer; sums wrap.
    I64,
    /// Unsigned 8-bit integer; sums wrap.
    U8,
}

impl DType {
    /// Every type, in the order in which tables show them.
    pub const ALL: [Self; 7] =
        [Self::F32, Self::F64, Self::F16, Self::Bf16, Self::I32, Self::I64, Self::U8];

    /// Size of one element in bytes; a power of two of at most 8.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::U8 => 1,
        }
    }

    /// Name as nccl-tests prints it (`float`, `half`, `bfloat16`, ...).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "float",
            Self::F64 => "double",
            Self::F16 => "half",
            Self::Bf16 => "bfloat16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::U8 => "uint8",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
