//! Memory of a run, and its elements.

use std::collections::TryReserveError;

use half::{bf16, f16};
use stepccl::DType;

use super::float8;

/// Memory aligned to a cache line.
#[derive(Debug)]
pub(crate) struct Buffer {
    lines: Vec<Line>,
}

#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
struct Line([u8; 64]);

impl Buffer {
    /// At least `bytes` bytes, all written once, so that no call pays for the first touch.
    ///
    /// # Errors
    ///
    /// Where the memory cannot be had.
    pub fn new(bytes: usize) -> Result<Self, TryReserveError> {
        let count = bytes.div_ceil(64);
        let mut lines = Vec::new();
        lines.try_reserve_exact(count)?;
        lines.resize(count, Line([0; 64]));
        Ok(Self { lines })
    }

    /// Where it starts. Void once the buffer is used by another method.
    pub fn pointer(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }

    /// Fill with bytes that are no value of an input and no result.
    pub fn poison(&mut self) {
        self.lines.fill(Line([0xa5; 64]));
    }

    /// Write element `i`; a complex number gets an imaginary part of 0.
    pub fn set(&mut self, i: usize, dtype: DType, value: f64) {
        let bytes: &[u8] = match dtype {
            DType::F32 => &(value as f32).to_ne_bytes(),
            DType::F64 => &value.to_ne_bytes(),
            DType::F16 => &f16::from_f64(value).to_ne_bytes(),
            DType::Bf16 => &bf16::from_f64(value).to_ne_bytes(),
            DType::F8E4M3 => &[float8::e4m3(value)],
            DType::F8E5M2 => &[float8::e5m2(value)],
            DType::C64 => &(u64::from((value as f32).to_bits())).to_le_bytes(),
            DType::C128 => &u128::from(value.to_bits()).to_le_bytes(),
            DType::U64 => &(value as u64).to_ne_bytes(),
            other => &(value as i64).to_le_bytes()[..other.size()],
        };
        let at = i * dtype.size();
        self.lines[at / 64].0[at % 64..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Element `i`.
    pub fn get(&self, i: usize, dtype: DType) -> f64 {
        let at = i * dtype.size();
        let bytes = &self.lines[at / 64].0[at % 64..];
        let part = |at: usize| match dtype {
            DType::C64 => f64::from(f32::from_ne_bytes(array(&bytes[at * 4..]))),
            _ => f64::from_ne_bytes(array(&bytes[at * 8..])),
        };
        match dtype {
            DType::F32 => f64::from(f32::from_ne_bytes(array(bytes))),
            DType::F64 => f64::from_ne_bytes(array(bytes)),
            DType::F16 => f16::from_ne_bytes(array(bytes)).to_f64(),
            DType::Bf16 => bf16::from_ne_bytes(array(bytes)).to_f64(),
            DType::F8E4M3 => float8::of_e4m3(bytes[0]),
            DType::F8E5M2 => float8::of_e5m2(bytes[0]),
            DType::I8 => f64::from(bytes[0] as i8),
            DType::I32 => f64::from(i32::from_ne_bytes(array(bytes))),
            DType::U32 => f64::from(u32::from_ne_bytes(array(bytes))),
            DType::I64 => i64::from_ne_bytes(array(bytes)) as f64,
            DType::U64 => u64::from_ne_bytes(array(bytes)) as f64,
            DType::C64 | DType::C128 if part(1) == 0.0 => part(0),
            // No result has an imaginary part.
            DType::C64 | DType::C128 => f64::NAN,
            _ => f64::from(bytes[0]),
        }
    }
}

/// The first bytes of `bytes`.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    std::array::from_fn(|i| bytes[i])
}
