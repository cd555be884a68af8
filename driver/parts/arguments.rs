// SPDX-License-Identifier: GPL-2.0

//! How long the arguments of the commands are, and how much of one is copied.

use super::errno::{E2BIG, EINVAL};
use crate::abi::{self, ioctl::command};

/// Largest argument that is looked at: longer ones are refused, or the check of the tail could be
/// made to take seconds.
pub const LONGEST: u32 = 4096;

/// Low byte of each command, and the size of its struct when it was first published.
pub const FIRST_SIZES: [(u8, u32); 11] = [
    (command::QUERY, 88),
    (command::RING_SETUP, 88),
    (command::ENTER, 32),
    (command::SUBMIT, 48),
    (command::REGISTER_MEMORY, 40),
    (command::REGISTER_DMABUF, 40),
    (command::EXPORT, 40),
    (command::IMPORT, 32),
    (command::UNREGISTER, 16),
    (command::ATTACH_EVENTFD, 16),
    (command::ATTACH_PROXY, 16),
];

/// What of a caller's struct is copied, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Copied in, and out again; what is missing is zero.
    pub copied: u32,
    /// Behind that: must be zero.
    pub tail: u32,
}

/// Low byte of a command number, where it is one of this driver.
pub const fn low_byte(number: u32) -> Option<u8> {
    if number & !0xff == (abi::ioctl::TYPE as u32) << 8 { Some(number as u8) } else { None }
}

/// What is copied of a struct of `size` bytes that had `first` bytes once and has `known` today.
///
/// # Errors
///
/// `EINVAL` where it is shorter than it ever was, `E2BIG` where it is too long to look at.
pub const fn extent(size: u32, first: u32, known: u32) -> Result<Extent, i32> {
    if size < first {
        return Err(EINVAL);
    }
    if size > LONGEST {
        return Err(E2BIG);
    }
    let copied = if size < known { size } else { known };
    Ok(Extent { copied, tail: size - copied })
}
