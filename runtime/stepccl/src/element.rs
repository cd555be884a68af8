//! Rust types that travel as elements of a message.

use stepccl_plan::DType;

mod sealed {
    pub trait Sealed {}
}

/// A type whose slices can be sent. Sealed: the engines know exactly these.
pub trait Element: Copy + Send + Sync + sealed::Sealed + 'static {
    /// Its name in the plans.
    const DTYPE: DType;
}

macro_rules! element {
    ($($rust:ty => $dtype:ident),*) => { $(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
        }
        const _: () = assert!(size_of::<$rust>() == DType::$dtype.size());
    )* };
}

/// An 8-bit float without infinity ([`DType::F8E4M3`]), as its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct F8E4M3(pub u8);

/// An 8-bit float with the exponent of f16 ([`DType::F8E5M2`]), as its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct F8E5M2(pub u8);

/// A truth value ([`DType::Bool`]): false where the byte is 0. A `bool` is none, because a message
/// can bring any byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Truth(pub u8);

/// A complex number ([`DType::C64`], [`DType::C128`]).
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Complex<T> {
    /// The real part.
    pub re: T,
    /// The imaginary part.
    pub im: T,
}

element! {
    f32 => F32, f64 => F64, half::f16 => F16, half::bf16 => Bf16, F8E4M3 => F8E4M3, F8E5M2 => F8E5M2,
    i8 => I8, u8 => U8, i32 => I32, u32 => U32, i64 => I64, u64 => U64,
    Truth => Bool, Complex<f32> => C64, Complex<f64> => C128
}
