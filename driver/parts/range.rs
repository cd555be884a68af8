// SPDX-License-Identifier: GPL-2.0

//! Whether a piece of memory may be registered, and a piece of a region used.

use super::errno::{EACCES, EINVAL, EOPNOTSUPP, EOVERFLOW, ERANGE};
use crate::abi::{address::in_region, command::access};

/// Pages behind a range of an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// Address of the first page.
    pub start: u64,
    /// Offset of the first byte in it.
    pub offset: u32,
    /// How many.
    pub count: u64,
}

/// The pages of `length` bytes at `address`, for a page size that is a power of two.
///
/// # Errors
///
/// `EINVAL` where it is empty or longer than `longest`, `EOVERFLOW` where it leaves `top`.
pub fn pages(address: u64, length: u64, longest: u64, top: u64, page: u32) -> Result<Pages, i32> {
    if length == 0 || length > longest {
        return Err(EINVAL);
    }
    let end = address.checked_add(length).ok_or(EOVERFLOW)?;
    if end > top {
        return Err(EOVERFLOW);
    }
    let mask = u64::from(page) - 1;
    let start = address & !mask;
    Ok(Pages {
        start,
        offset: (address & mask) as u32,
        count: (end - start).div_ceil(u64::from(page)),
    })
}

/// Check rights that are asked for on a new region.
///
/// # Errors
///
/// `EINVAL` for none, `EOPNOTSUPP` for one that is not known.
pub const fn rights(asked: u32) -> Result<(), i32> {
    if asked & !access::ALL != 0 {
        Err(EOPNOTSUPP)
    } else if asked == 0 {
        Err(EINVAL)
    } else {
        Ok(())
    }
}

/// Check the use of `length` bytes at `offset` of a region of `bytes` bytes with the rights `has`.
///
/// # Errors
///
/// `ERANGE` where the range leaves the region, `EACCES` where a right of `needs` is missing.
pub const fn use_of(offset: u64, length: u64, bytes: u64, has: u32, needs: u32) -> Result<(), i32> {
    if !in_region(offset, length, bytes) {
        Err(ERANGE)
    } else if has & needs != needs {
        Err(EACCES)
    } else {
        Ok(())
    }
}

/// The part of a region of `bytes` bytes that begins at `offset`: its length, where 0 asks for all.
///
/// # Errors
///
/// `ERANGE` where it leaves the region or is empty.
pub const fn part(offset: u64, length: u64, bytes: u64) -> Result<u64, i32> {
    if offset >= bytes {
        return Err(ERANGE);
    }
    let length = if length == 0 { bytes - offset } else { length };
    if in_region(offset, length, bytes) { Ok(length) } else { Err(ERANGE) }
}
