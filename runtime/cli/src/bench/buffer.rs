//! Memory of a run, and its elements.

use std::collections::TryReserveError;

use half::{bf16, f16};
use stepccl::DType;

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

    /// Write element `i`.
    pub fn set(&mut self, i: usize, dtype: DType, value: f64) {
        let bytes: &[u8] = match dtype {
            DType::F32 => &(value as f32).to_ne_bytes(),
            DType::F64 => &value.to_ne_bytes(),
            DType::F16 => &f16::from_f64(value).to_ne_bytes(),
            DType::Bf16 => &bf16::from_f64(value).to_ne_bytes(),
            DType::I32 => &(value as i32).to_ne_bytes(),
            DType::I64 => &(value as i64).to_ne_bytes(),
            _ => &[value as i64 as u8],
        };
        let at = i * dtype.size();
        self.lines[at / 64].0[at % 64..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Element `i`.
    pub fn get(&self, i: usize, dtype: DType) -> f64 {
        let at = i * dtype.size();
        let bytes = &self.lines[at / 64].0[at % 64..];
        let four = || [bytes[0], bytes[1], bytes[2], bytes[3]];
        let eight =
            || [bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]];
        match dtype {
            DType::F32 => f64::from(f32::from_ne_bytes(four())),
            DType::F64 => f64::from_ne_bytes(eight()),
            DType::F16 => f16::from_ne_bytes([bytes[0], bytes[1]]).to_f64(),
            DType::Bf16 => bf16::from_ne_bytes([bytes[0], bytes[1]]).to_f64(),
            DType::I32 => f64::from(i32::from_ne_bytes(four())),
            DType::I64 => i64::from_ne_bytes(eight()) as f64,
            _ => f64::from(bytes[0]),
        }
    }
}
