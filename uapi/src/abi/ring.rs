//! Where things are in the ring mapping, and index arithmetic.
//!
//! Heads and tails are `u32` that count for ever and wrap. Who writes which word, and in which
//! order, is on one page: Documentation/memory-model.md.

use super::completion::CompletionEntry;
use super::submission::SubmissionEntry;

/// Bits of the word at [`RingOffsets::sq_flags`]; written by the side that takes entries.
pub mod sq_flags {
    /// It sleeps and must be woken after a new tail.
    pub const NEED_WAKEUP: u32 = 1 << 0;
    /// Entries wait because no completion slot is free.
    pub const CQ_FULL: u32 = 1 << 1;
    /// The ring is broken and takes nothing any more.
    pub const FAILED: u32 = 1 << 2;
}

/// Bits of the word at [`RingOffsets::cq_flags`]; written by the side that submits.
pub mod cq_flags {
    /// It sleeps, or is about to, until `cq_tail` moves.
    pub const WAITING: u32 = 1 << 0;
}

/// No wish for a NUMA node.
pub const NUMA_ANY: i32 = -1;

/// Bytes of a word of the mapping.
pub const WORD_BYTES: u32 = 4;
/// What the first entry of a queue is aligned to, in bytes.
pub const ENTRY_ALIGN: u32 = 64;

/// `struct dma_engine_ring_offsets`: bytes from the start of the mapping.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingOffsets {
    /// Next submission entry the driver takes.
    pub sq_head: u32,
    /// Next submission slot the caller fills.
    pub sq_tail: u32,
    /// Bits of [`sq_flags`].
    pub sq_flags: u32,
    /// First of the submission entries.
    pub sq_entries: u32,
    /// Next completion the caller reads.
    pub cq_head: u32,
    /// Next completion slot the driver fills.
    pub cq_tail: u32,
    /// Bits of [`cq_flags`].
    pub cq_flags: u32,
    /// Times that entries had to wait for a completion slot.
    pub cq_stalls: u32,
    /// First of the completion entries.
    pub cq_entries: u32,
    /// 0.
    pub reserved: [u32; 3],
}

const _: () = assert!(core::mem::size_of::<RingOffsets>() == 48);

/// Two cache lines: neighbours are fetched in pairs on x86, and aarch64 lines may be this long.
const LINE: u32 = 128;

impl RingOffsets {
    /// A layout in which no word shares a cache line with one that the other side writes often,
    /// and the bytes it takes. `None` where a number of entries is no power of two or 2^32 bytes
    /// do not suffice.
    #[must_use]
    pub const fn lay_out(sq_entries: u32, cq_entries: u32) -> Option<(Self, u32)> {
        if !sq_entries.is_power_of_two() || !cq_entries.is_power_of_two() {
            return None;
        }
        let entries = 6 * LINE;
        let submissions = sq_entries as u64 * core::mem::size_of::<SubmissionEntry>() as u64;
        let completions = cq_entries as u64 * core::mem::size_of::<CompletionEntry>() as u64;
        let total = entries as u64 + submissions + completions;
        if total > u32::MAX as u64 {
            return None;
        }
        let offsets = Self {
            sq_tail: 0,
            cq_head: LINE,
            cq_tail: 2 * LINE,
            cq_stalls: 2 * LINE + WORD_BYTES,
            sq_head: 3 * LINE,
            // Flags seldom change: alone on their lines they stay in both caches.
            sq_flags: 4 * LINE,
            cq_flags: 5 * LINE,
            sq_entries: entries,
            cq_entries: entries + submissions as u32,
            reserved: [0; 3],
        };
        Some((offsets, total as u32))
    }
}

/// Entries between a head and a tail; `None` where a queue of `entries` cannot hold so many, so
/// that one of the two is a lie.
#[must_use]
pub const fn distance(head: u32, tail: u32, entries: u32) -> Option<u32> {
    let count = tail.wrapping_sub(head);
    if count > entries { None } else { Some(count) }
}

/// Whether a head that the other side owns may have moved from `old` to `new` in a queue whose
/// tail is `tail`: forward, and not past the tail.
#[must_use]
pub const fn head_may_move(old: u32, new: u32, tail: u32) -> bool {
    tail.wrapping_sub(new) <= tail.wrapping_sub(old)
}

/// Slot of an index in a queue of `entries`, a power of two.
#[must_use]
pub const fn slot(index: u32, entries: u32) -> u32 {
    index & entries.wrapping_sub(1)
}
