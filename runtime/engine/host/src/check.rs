//! What an operation must be before a byte of it is touched.
//!
//! Addresses become pointers here, and a checked operation holds exactly what the kernels
//! require: ranges that are there, may be used so, are aligned and do not overlap. Nothing here
//! dereferences.

use stepccl_engine::{Address, EngineError};
use stepccl_plan::DType;

use crate::region::{Access, RegionTable};

/// Most sources of one reduce.
pub(crate) const MAX_SOURCES: u32 = 4096;

/// A copy that may be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedCopy {
    pub(crate) src: *const u8,
    pub(crate) dst: *mut u8,
    pub(crate) bytes: usize,
}

/// Check a copy of `bytes` bytes.
#[inline]
pub(crate) fn copy(
    regions: &RegionTable,
    src: Address,
    dst: Address,
    bytes: u64,
) -> Result<CheckedCopy, EngineError> {
    let from = regions.resolve(src, bytes, Access::Read)?;
    let to = regions.resolve(dst, bytes, Access::Write)?;
    // It fits: a region of so many bytes is there.
    let length = bytes as usize;
    if overlap(from, to, length) {
        return Err(EngineError::Overlap { src, dst, bytes });
    }
    Ok(CheckedCopy { src: from, dst: to, bytes: length })
}

/// Bytes of `count` elements, and where the result of a reduce goes.
pub(crate) fn reduce_dst(
    regions: &RegionTable,
    sources: usize,
    dst: Address,
    count: u64,
    dtype: DType,
) -> Result<(*mut u8, u64), EngineError> {
    if sources == 0 || sources > MAX_SOURCES as usize {
        return Err(EngineError::BadSources { sources, limit: MAX_SOURCES });
    }
    // A count past 2^64 bytes is out of any bounds.
    let bytes = count.saturating_mul(dtype.size() as u64);
    let to = regions.resolve(dst, bytes, Access::Write)?;
    aligned(to, dst, dtype)?;
    Ok((to, bytes))
}

/// One source of a reduce into `to`, which is the range at `dst`.
#[inline]
pub(crate) fn reduce_src(
    regions: &RegionTable,
    src: Address,
    (to, dst): (*mut u8, Address),
    bytes: u64,
    dtype: DType,
) -> Result<*const u8, EngineError> {
    let from = regions.resolve(src, bytes, Access::Read)?;
    aligned(from, src, dtype)?;
    if from != to && overlap(from, to, bytes as usize) {
        return Err(EngineError::Overlap { src, dst, bytes });
    }
    Ok(from)
}

#[inline]
fn aligned(pointer: *const u8, address: Address, dtype: DType) -> Result<(), EngineError> {
    let align = dtype.size();
    if pointer.addr() & (align - 1) != 0 {
        return Err(EngineError::Misaligned { address, align });
    }
    Ok(())
}

/// Whether ranges of `bytes` bytes share a byte.
#[inline]
fn overlap(a: *const u8, b: *const u8, bytes: usize) -> bool {
    a.addr().abs_diff(b.addr()) < bytes
}
