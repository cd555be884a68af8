// SPDX-License-Identifier: GPL-2.0

//! Whether a channel or the CPU copies.

use super::errno::EOPNOTSUPP;
use crate::abi::descriptor::flags;

/// Who copies, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// A channel.
    Channel,
    /// The CPU: it was asked for.
    Asked,
    /// The CPU: no channel is there that reaches both ends.
    NoChannel,
    /// The CPU: the copy is short.
    Short,
    /// The CPU: source, destination or length is not a multiple of what channels need.
    Misaligned,
}

/// What is known about a copy.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Flags of the descriptor.
    pub flags: u8,
    /// Whether a channel reaches both ends.
    pub reachable: bool,
    /// Source, destination and length, all in one by "or".
    pub bits: u64,
    /// Bytes.
    pub length: u64,
    /// What channels need all of them to be a multiple of, a power of two.
    pub align: u64,
    /// Bytes from which on a channel is worth it.
    pub least: u64,
}

/// Choose.
///
/// # Errors
///
/// `EOPNOTSUPP` where only a channel will do and none can.
pub const fn choose(facts: &Facts) -> Result<Path, i32> {
    let only_channel = facts.flags & flags::CHANNEL != 0;
    let why = if facts.flags & flags::CPU != 0 {
        Path::Asked
    } else if !facts.reachable {
        Path::NoChannel
    } else if facts.bits & (facts.align - 1) != 0 {
        Path::Misaligned
    } else if facts.length < facts.least && !only_channel {
        Path::Short
    } else {
        return Ok(Path::Channel);
    };
    if only_channel { Err(EOPNOTSUPP) } else { Ok(why) }
}
