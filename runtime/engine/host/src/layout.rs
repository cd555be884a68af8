//! Where things lie in the segment of one rank.
//!
//! | bytes | what | written by | read by |
//! |---|---|---|---|
//! | 0 .. 64 | facts of the rank, see [`header`](crate::header) | owner, once | all |
//! | 64 .. 72 | pushing: 1 and the rank whose memory the owner writes, or is about to; 0: none | owner | all |
//! | 128 .. 136 | state word: what became of the rank | owner | all |
//! | 136 .. 256 | why it failed, as text filled up with zeros; valid with the state | owner | all |
//! | 256 .. 260 | doorbell, a futex word that only grows | all | owner |
//! | 260 .. 264 | sleeping: 1 while the owner sleeps or is about to | owner | all |
//! | 4096 .. | flags, one `u64` in a line of its own each | owner | all |
//! | next page .. | posts of the collective board, then of the board of each peer | owner | all |
//! | next page .. | staging | as the plan says | as the plan says |
//!
//! A post starts in a line of its own: its number plus 1, two words, and data from byte 24 on, so
//! that the shortest messages are one line.

use stepccl_engine::{Board, BoardShape, REASON_BYTES};
use stepccl_plan::{GRAIN_BYTES, MAX_FLAGS};

use crate::HostError;
use crate::header::FACTS_BYTES;

/// Alignment of staging, and of the segment's parts.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Offset of the word that tells whose memory the owner writes.
pub(crate) const PUSHING: usize = 64;
/// Offset of the state word.
pub(crate) const STATE: usize = 128;
/// Offset of the reason of a failure.
pub(crate) const REASON: usize = STATE + 8;
/// Offset of the doorbell.
pub(crate) const DOORBELL: usize = 256;
/// Offset of the sleeping word.
pub(crate) const SLEEPING: usize = 260;
/// Offset of flag 0.
pub(crate) const FLAGS: usize = PAGE_BYTES;
/// Distance from a flag to the next: a cache line, so that flags do not disturb one another.
pub(crate) const FLAG_STRIDE: usize = GRAIN_BYTES;
/// Most posts of a board.
pub(crate) const MAX_POSTS: u32 = 64;
/// Most bytes of the boards of a rank.
pub(crate) const MAX_BOARD_BYTES: usize = 1 << 28;
/// Offset of a post's data in the post.
pub(crate) const POST_DATA: usize = 24;
/// Longest staging. Collectives of any size pass through some MiB, so more is a mistake.
pub(crate) const MAX_STAGING_BYTES: u64 = 1 << 32;

const _: () = {
    assert!(FACTS_BYTES <= PUSHING && PUSHING + 8 <= STATE);
    assert!(STATE + 8 <= REASON && REASON + REASON_BYTES <= DOORBELL && SLEEPING + 4 <= FLAGS);
    assert!(STATE / FLAG_STRIDE != DOORBELL / FLAG_STRIDE);
    // One look at the line tells a signaller whether to ring, and where.
    assert!(DOORBELL / FLAG_STRIDE == SLEEPING / FLAG_STRIDE);
};

/// Boards of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Boards {
    pub(crate) collective: BoardShape,
    pub(crate) pair: BoardShape,
}

/// Boards of one shape, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Places {
    shape: BoardShape,
    /// Offset of the first post.
    first: usize,
    /// Distance from a post to the next.
    stride: usize,
}

impl Places {
    const fn new(shape: BoardShape, first: usize) -> Self {
        Self { shape, first, stride: post_bytes(shape) }
    }

    /// Offset of a post of the board with this index, where boards have posts.
    #[inline]
    const fn post(&self, board: usize, number: u64) -> Option<usize> {
        let posts = self.shape.posts as usize;
        if posts == 0 {
            return None;
        }
        // Posts are a power of two, checked by `Layout::new`.
        let place = number as usize & (posts - 1);
        Some(self.first + (board * posts + place) * self.stride)
    }
}

/// Offsets and length of a segment, the same for every rank of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    ranks: u32,
    flags: u32,
    /// The one board of collectives, and those of the peers.
    collective: Places,
    pair: Places,
    staging: usize,
    staging_bytes: usize,
}

impl Layout {
    /// Layout for `ranks` ranks: `flags` flags, boards, and `staging_bytes` bytes of staging.
    pub(crate) fn new(
        ranks: u32,
        flags: u32,
        boards: Boards,
        staging_bytes: u64,
    ) -> Result<Self, HostError> {
        if flags > MAX_FLAGS {
            return Err(HostError::TooManyFlags { flags, limit: MAX_FLAGS });
        }
        let pairs = Self::boards_at(flags) + board_bytes(boards.collective, 1)?;
        let boards_end = pairs + board_bytes(boards.pair, ranks)?;
        let too_long = HostError::StagingTooLong { staging_bytes, limit: MAX_STAGING_BYTES };
        match usize::try_from(staging_bytes) {
            Ok(bytes) if staging_bytes <= MAX_STAGING_BYTES && bytes <= isize::MAX as usize / 2 => {
                let staging = boards_end.next_multiple_of(PAGE_BYTES);
                let collective = Places::new(boards.collective, Self::boards_at(flags));
                let pair = Places::new(boards.pair, pairs);
                Ok(Self { ranks, flags, collective, pair, staging, staging_bytes: bytes })
            }
            _ => Err(too_long),
        }
    }

    /// Flags of a rank.
    pub(crate) const fn flags(self) -> u32 {
        self.flags
    }

    /// Offset of a flag; the caller knows that there is one.
    pub(crate) const fn flag(index: u32) -> usize {
        FLAGS + index as usize * FLAG_STRIDE
    }

    /// Offset of the boards, a multiple of [`PAGE_BYTES`].
    const fn boards_at(flags: u32) -> usize {
        Self::flag(flags).next_multiple_of(PAGE_BYTES)
    }

    /// Boards of a rank.
    pub(crate) const fn boards(self) -> Boards {
        Boards { collective: self.collective.shape, pair: self.pair.shape }
    }

    /// Shape of a board, where there is one with posts.
    pub(crate) const fn board(self, board: Board) -> Option<BoardShape> {
        let shape = match board {
            Board::Collective => self.collective.shape,
            Board::Pair(peer) if peer < self.ranks => self.pair.shape,
            Board::Pair(_) => return None,
        };
        if shape.posts == 0 { None } else { Some(shape) }
    }

    /// Offset of a post with room for `end` bytes of data, where there is such a board; a multiple
    /// of the line, before staging.
    #[inline]
    pub(crate) const fn post(&self, board: Board, number: u64, end: usize) -> Option<usize> {
        let (places, board) = match board {
            Board::Collective => (&self.collective, 0),
            Board::Pair(peer) if peer < self.ranks => (&self.pair, peer as usize),
            Board::Pair(_) => return None,
        };
        if end > places.shape.bytes { None } else { places.post(board, number) }
    }

    /// Offset of staging, a multiple of [`PAGE_BYTES`].
    pub(crate) const fn staging(self) -> usize {
        self.staging
    }

    /// Length of staging.
    pub(crate) const fn staging_bytes(self) -> usize {
        self.staging_bytes
    }

    /// Length of the segment.
    pub(crate) const fn segment_bytes(self) -> usize {
        self.staging + self.staging_bytes
    }
}

/// Distance from a post to the next.
const fn post_bytes(shape: BoardShape) -> usize {
    (POST_DATA + shape.bytes).next_multiple_of(FLAG_STRIDE)
}

/// Bytes of `boards` boards of a shape that is possible.
fn board_bytes(shape: BoardShape, boards: u32) -> Result<usize, HostError> {
    let BoardShape { posts, bytes } = shape;
    let bad = HostError::BadBoard { posts, bytes, limit: MAX_POSTS, limit_bytes: MAX_BOARD_BYTES };
    if posts > MAX_POSTS || !(posts == 0 || posts.is_power_of_two()) || bytes > MAX_BOARD_BYTES {
        return Err(bad);
    }
    let all = u64::from(boards) * u64::from(posts) * post_bytes(shape) as u64;
    usize::try_from(all).ok().filter(|all| *all <= MAX_BOARD_BYTES).ok_or(bad)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NONE: BoardShape = BoardShape { posts: 0, bytes: 0 };
    const NO_BOARDS: Boards = Boards { collective: NONE, pair: NONE };

    #[test]
    fn limits() {
        let layout = |flags, staging| Layout::new(2, flags, NO_BOARDS, staging);
        assert!(layout(MAX_FLAGS, MAX_STAGING_BYTES).is_ok());
        assert!(matches!(layout(MAX_FLAGS + 1, 0), Err(HostError::TooManyFlags { .. })));
        assert!(matches!(layout(0, MAX_STAGING_BYTES + 1), Err(HostError::StagingTooLong { .. })));
        assert_eq!(layout(0, 0).unwrap().segment_bytes(), PAGE_BYTES);
        for (posts, bytes) in [(3, 64), (2 * MAX_POSTS, 64), (2, MAX_BOARD_BYTES)] {
            let shape = BoardShape { posts, bytes };
            for boards in
                [Boards { collective: shape, pair: NONE }, Boards { collective: NONE, pair: shape }]
            {
                let answer = Layout::new(2, 0, boards, 0);
                assert!(matches!(answer, Err(HostError::BadBoard { .. })), "{answer:?}");
            }
        }
        let layout = layout(1, 0).unwrap();
        assert_eq!(layout.post(Board::Collective, 0, 0), None);
        assert_eq!(layout.post(Board::Pair(0), 0, 0), None);
    }

    proptest! {
        #[test]
        fn parts_follow_one_another(
            flags in 0..=MAX_FLAGS,
            staging in 0..=MAX_STAGING_BYTES,
            ranks in 1u32..40,
            posts in (0u32..4, 0u32..4),
            bytes in (0usize..5000, 0usize..5000),
        ) {
            let shape = |posts, bytes| BoardShape { posts: 1u32 << posts, bytes };
            let boards =
                Boards { collective: shape(posts.0, bytes.0), pair: shape(posts.1, bytes.1) };
            let layout = Layout::new(ranks, flags, boards, staging).unwrap();
            prop_assert_eq!(layout.staging() % PAGE_BYTES, 0);
            prop_assert_eq!(layout.segment_bytes() as u64, layout.staging() as u64 + staging);
            let mut end = Layout::flag(flags);
            let all = std::iter::once(Board::Collective).chain((0..ranks).map(Board::Pair));
            for board in all {
                let shape = layout.board(board).unwrap();
                for number in 0..u64::from(shape.posts) {
                    let post = layout.post(board, number, shape.bytes).unwrap();
                    prop_assert_eq!(layout.post(board, number, shape.bytes + 1), None);
                    prop_assert!(post >= end && post.is_multiple_of(FLAG_STRIDE));
                    prop_assert_eq!(layout.post(board, number + 1024, 0), Some(post));
                    end = post + POST_DATA + shape.bytes;
                }
            }
            prop_assert!(end <= layout.staging() && layout.staging() - end < 2 * PAGE_BYTES);
            prop_assert_eq!(layout.post(Board::Pair(ranks), 0, 0), None);
        }
    }
}
