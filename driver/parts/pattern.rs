// SPDX-License-Identifier: GPL-2.0

//! The pattern of a fill.

/// The eight bytes that begin at byte `at` of the endlessly repeated `pattern`, as they lie in
/// memory.
pub const fn from(pattern: u64, at: u64) -> u64 {
    let bits = (at % 8) as u32 * 8;
    if cfg!(target_endian = "little") {
        pattern.rotate_right(bits)
    } else {
        pattern.rotate_left(bits)
    }
}
