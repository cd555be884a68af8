// SPDX-License-Identifier: GPL-2.0

//! Errors that parts answer with, as positive errno of `asm-generic/errno.h`.

/// The struct has a tail that is not known.
pub const E2BIG: i32 = 7;
/// The right is not there.
pub const EACCES: i32 = 13;
/// A value that is never allowed.
pub const EINVAL: i32 = 22;
/// A range leaves what it must lie in.
pub const ERANGE: i32 = 34;
/// A sum leaves its type.
pub const EOVERFLOW: i32 = 75;
/// Not known to this driver.
pub const EOPNOTSUPP: i32 = 95;
