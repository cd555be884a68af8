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
    /// IEEE 754 binary16; combined in f32 and rounded once to nearest even.
    F16,
    /// bfloat16; combined in f32 and rounded once to nearest even.
    Bf16,
    /// 8-bit float of 4 exponent and 3 fraction bits without infinity (`e4m3fn`); combined in f32
    /// and rounded once to nearest even; 448 stands for all that is larger.
    F8E4M3,
    /// 8-bit float of 5 exponent and 2 fraction bits; combined in f32 and rounded once to nearest
    /// even.
    F8E5M2,
    /// Signed 8-bit integer; sums and products wrap.
    I8,
    /// Unsigned 8-bit integer; sums and products wrap.
    U8,
    /// Signed 32-bit integer; sums and products wrap.
    I32,
    /// Unsigned 32-bit integer; sums and products wrap.
    U32,
    /// Signed 64-bit integer; sums and products wrap.
    I64,
    /// Unsigned 64-bit integer; sums and products wrap.
    U64,
    /// One byte: false where it is 0, true otherwise. Combinations make 0 or 1.
    Bool,
    /// Two f32, the real part first.
    C64,
    /// Two f64, the real part first.
    C128,
}

/// What a [`DType`] stands for, as far as operations care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A real floating-point number.
    Float,
    /// A signed integer.
    Signed,
    /// An unsigned integer.
    Unsigned,
    /// True or false.
    Truth,
    /// A complex floating-point number.
    Complex,
}

impl DType {
    /// Every type, in the order in which tables show them.
    pub const ALL: [Self; 15] = [
        Self::F32,
        Self::F64,
        Self::F16,
        Self::Bf16,
        Self::F8E4M3,
        Self::F8E5M2,
        Self::I8,
        Self::U8,
        Self::I32,
        Self::U32,
        Self::I64,
        Self::U64,
        Self::Bool,
        Self::C64,
        Self::C128,
    ];

    /// Size of one element in bytes; a power of two of at most 16.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::C128 => 16,
            Self::F64 | Self::I64 | Self::U64 | Self::C64 => 8,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::F8E4M3 | Self::F8E5M2 | Self::I8 | Self::U8 | Self::Bool => 1,
        }
    }

    /// What an element stands for.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            Self::F32 | Self::F64 | Self::F16 | Self::Bf16 | Self::F8E4M3 | Self::F8E5M2 => {
                Kind::Float
            }
            Self::I8 | Self::I32 | Self::I64 => Kind::Signed,
            Self::U8 | Self::U32 | Self::U64 => Kind::Unsigned,
            Self::Bool => Kind::Truth,
            Self::C64 | Self::C128 => Kind::Complex,
        }
    }

    /// Whether an element is a signed or unsigned integer.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), Kind::Signed | Kind::Unsigned)
    }

    /// Name as nccl-tests prints it (`float`, `half`, `bfloat16`, ...), or in its manner.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "float",
            Self::F64 => "double",
            Self::F16 => "half",
            Self::Bf16 => "bfloat16",
            Self::F8E4M3 => "f8e4m3",
            Self::F8E5M2 => "f8e5m2",
            Self::I8 => "int8",
            Self::U8 => "uint8",
            Self::I32 => "int32",
            Self::U32 => "uint32",
            Self::I64 => "int64",
            Self::U64 => "uint64",
            Self::Bool => "bool",
            Self::C64 => "complex64",
            Self::C128 => "complex128",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
