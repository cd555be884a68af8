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

element!(f32 => F32, f64 => F64, half::f16 => F16, half::bf16 => Bf16, i32 => I32, i64 => I64, u8 => U8);
