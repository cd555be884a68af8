// SPDX-License-Identifier: GPL-2.0

//! Which rings can be set up.

use super::errno::{EINVAL, EOPNOTSUPP};
use crate::abi::{RingSetup, ring::RingOffsets};

/// Most entries of a submission queue; a completion queue may have twice as many.
pub const MAX_ENTRIES: u32 = 1 << 15;

/// A ring that can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Slots for submissions.
    pub sq_entries: u32,
    /// Slots for completions.
    pub cq_entries: u32,
    /// Where things are.
    pub offsets: RingOffsets,
    /// Bytes of the mapping, a multiple of the page size.
    pub bytes: u32,
}

/// Check what was asked for, and lay the ring out. Whether the NUMA node is there is not looked at.
///
/// # Errors
///
/// `EOPNOTSUPP` for a flag that is not known, `EINVAL` for sizes that cannot be.
pub fn plan(asked: &RingSetup, page_bytes: u32) -> Result<Plan, i32> {
    // No polling thread yet.
    if asked.flags != 0 {
        return Err(EOPNOTSUPP);
    }
    if asked.poll_idle_us != 0 {
        return Err(EINVAL);
    }
    let sq_entries = asked.sq_entries;
    if !sq_entries.is_power_of_two() || sq_entries > MAX_ENTRIES {
        return Err(EINVAL);
    }
    let cq_entries = match asked.cq_entries {
        0 => 2 * sq_entries,
        given => given,
    };
    if !cq_entries.is_power_of_two() || cq_entries < sq_entries || cq_entries > 2 * MAX_ENTRIES {
        return Err(EINVAL);
    }
    let (offsets, bytes) = RingOffsets::lay_out(sq_entries, cq_entries).ok_or(EINVAL)?;
    let bytes = bytes.checked_next_multiple_of(page_bytes).ok_or(EINVAL)?;
    Ok(Plan { sq_entries, cq_entries, offsets, bytes })
}
