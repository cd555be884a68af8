//! How a rank's staging and flags are shared out. Pure arithmetic.
//!
//! ```text
//! staging:  | small slots | large slots of the running collective | pair slots, a few a peer |
//! flags:    | finished | phases of collectives | sent to, taken from, read of each peer        |
//! ```
//!
//! Small messages go through boards, or, where the engine has none, have slots of their own at fixed places, so that one follows the other without
//! waiting for slow readers; large ones share out the rest anew for every operation.

use stepccl_engine::BoardShape;

/// Posts of the board of collectives.
const POSTS: u32 = 8;
/// Posts of the board of a pair, where ranks are few and where they are many.
const PAIR_POSTS: (u32, u32) = (8, 4);
/// More ranks than this are many.
const FEW_RANKS: u32 = 64;
/// Most data of a post of a pair.
const MAX_PAIR_POST_BYTES: usize = 2048;
/// Bytes of a post that are not data.
const POST_WORDS: usize = 24;

/// Boards of one rank, from a share of its staging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoardShares {
    pub collective: BoardShape,
    pub pair: BoardShape,
    /// What is left.
    pub staging_bytes: usize,
}

impl BoardShares {
    /// Take the boards of `ranks` ranks from `staging_bytes` (as for [`Geometry::new`]).
    pub fn of(ranks: u32, staging_bytes: usize) -> Self {
        let line = |bytes: usize| (bytes / 64 * 64).max(64);
        let post = line(staging_bytes / 16 / POSTS as usize);
        let pair_posts = if ranks <= FEW_RANKS { PAIR_POSTS.0 } else { PAIR_POSTS.1 };
        let places = pair_posts as usize * ranks.max(1) as usize;
        let pair_post = line(staging_bytes / 32 / places).min(MAX_PAIR_POST_BYTES + 64);
        let taken = (post * POSTS as usize).next_multiple_of(64) + pair_post * places;
        Self {
            collective: BoardShape { posts: POSTS, bytes: post - POST_WORDS },
            pair: BoardShape { posts: pair_posts, bytes: pair_post - POST_WORDS },
            staging_bytes: staging_bytes.saturating_sub(taken) / 4096 * 4096,
        }
    }
}

/// Slots of small messages, where the engine has no board for them.
pub(crate) const SMALL_SLOTS: u64 = 8;
/// A small round says "finished" only every so many rounds: readers are never more behind than
/// this plus what they have not read, and that must stay below `SMALL_SLOTS`.
pub(crate) const FINISHED_EVERY: u64 = 4;
/// Flag that holds the number of rounds this rank has finished.
pub(crate) const FINISHED: u32 = 0;
/// Slots of a pair.
const PAIR_SLOTS: u64 = 4;
/// Outputs of at least this many bytes are written past the caches, which could not hold them.
pub(crate) const STREAMING_BYTES: usize = 16 << 20;
/// Bytes of the header in front of a message of a pair.
pub(crate) const HEADER_BYTES: usize = 64;

/// Shares of one rank's staging and flags; the same for every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub ranks: u32,
    /// Flags that plans may use.
    pub phases: u32,
    pub small_slot_bytes: usize,
    pub large_offset: usize,
    pub large_bytes: usize,
    pub pair_offset: usize,
    pub pair_slot_bytes: usize,
}

impl Geometry {
    /// Share out `staging_bytes` (at least 64 KiB, and 1 KiB a rank; with `boards`, what they left
    /// of it) for `ranks` ranks.
    pub fn new(ranks: u32, staging_bytes: usize, boards: bool) -> Self {
        let line = |bytes: usize| bytes / 64 * 64;
        let peers = (ranks as usize).saturating_sub(1).max(1);
        let small_slot_bytes =
            if boards { 0 } else { line(staging_bytes / 16 / SMALL_SLOTS as usize) };
        let large_offset = small_slot_bytes * SMALL_SLOTS as usize;
        let pair_slot_bytes = line(staging_bytes / 4 / peers / PAIR_SLOTS as usize).max(128);
        let pair_bytes = pair_slot_bytes * PAIR_SLOTS as usize * peers;
        let pair_offset = line(staging_bytes.saturating_sub(pair_bytes));
        Self {
            ranks,
            phases: 2 * ranks.max(8),
            small_slot_bytes,
            large_offset,
            large_bytes: pair_offset.saturating_sub(large_offset),
            pair_offset,
            pair_slot_bytes,
        }
    }

    /// Flags a rank needs.
    pub const fn flags(&self) -> u32 {
        1 + self.phases + 3 * self.ranks
    }

    /// Flag of a plan's `phase`.
    pub const fn phase_flag(&self, phase: u32) -> u32 {
        1 + phase
    }

    /// Flag of the sender: slots it has filled for `receiver`.
    pub const fn sent_flag(&self, receiver: u32) -> u32 {
        1 + self.phases + receiver
    }

    /// Flag of the receiver: slots of `sender` it has emptied.
    pub const fn taken_flag(&self, sender: u32) -> u32 {
        1 + self.phases + self.ranks + sender
    }

    /// Flag of the receiver: posts of `sender` it has read.
    pub const fn read_flag(&self, sender: u32) -> u32 {
        1 + self.phases + 2 * self.ranks + sender
    }

    /// Offset in the sender's staging of slot number `slot` of the pair.
    pub fn pair_slot(&self, sender: u32, receiver: u32, slot: u64) -> u64 {
        debug_assert_ne!(sender, receiver);
        let index = if receiver < sender { receiver } else { receiver - 1 };
        let slot = u64::from(index) * PAIR_SLOTS + slot % PAIR_SLOTS;
        self.pair_offset as u64 + slot * self.pair_slot_bytes as u64
    }

    /// Slots of a pair that may be filled and not yet emptied.
    pub const fn pair_slots(&self) -> u64 {
        PAIR_SLOTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_do_not_overlap_and_stay_inside() {
        for ranks in [1, 2, 3, 8, 64, 128] {
            for staging in [64 << 10, 128 << 10, 1 << 20, 4 << 20, 64 << 20] {
                let staging = staging.max(ranks as usize * 1024);
                let g = Geometry::new(ranks, staging, false);
                let peers = ranks.max(2) - 1;
                assert!(g.small_slot_bytes >= 64);
                assert!(g.large_offset >= g.small_slot_bytes * SMALL_SLOTS as usize);
                assert!(g.large_bytes >= staging / 4, "{ranks} {staging} {g:?}");
                assert!(g.large_offset + g.large_bytes <= g.pair_offset);
                let mut seen = Vec::new();
                for receiver in (0..ranks).filter(|&r| r != peers) {
                    for slot in 0..PAIR_SLOTS {
                        seen.push(g.pair_slot(peers, receiver, slot));
                    }
                }
                seen.sort_unstable();
                for pair in seen.windows(2) {
                    assert!(pair[1] - pair[0] >= g.pair_slot_bytes as u64);
                }
                if let (Some(first), Some(last)) = (seen.first(), seen.last()) {
                    assert!(*first >= g.pair_offset as u64);
                    assert!(*last + g.pair_slot_bytes as u64 <= staging as u64);
                }
                assert!(g.pair_slot_bytes > HEADER_BYTES);
            }
        }
    }

    #[test]
    fn flags_are_distinct() {
        let g = Geometry::new(5, 1 << 20, false);
        let mut flags = vec![FINISHED];
        flags.extend((0..g.phases).map(|p| g.phase_flag(p)));
        flags.extend((0..5).map(|r| g.sent_flag(r)));
        flags.extend((0..5).map(|r| g.taken_flag(r)));
        flags.extend((0..5).map(|r| g.read_flag(r)));
        let n = flags.len();
        flags.sort_unstable();
        flags.dedup();
        assert_eq!((flags.len(), *flags.last().unwrap()), (n, g.flags() - 1));
    }
}
