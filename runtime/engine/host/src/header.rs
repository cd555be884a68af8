//! The facts at the start of a segment, and the state word.
//!
//! The owner writes the facts before it passes the segment on; they never change after. Peers
//! read each once and compare it with what they have, so that ranks of different versions or
//! settings find out before they touch each other's memory.

use stepccl_engine::RankState;
use stepccl_memory::{MemoryError, View};

use crate::HostError;
use crate::layout::{Boards, Layout};

/// `StepCCLh`, read as a little-endian number.
const MAGIC: u64 = u64::from_le_bytes(*b"StepCCLh");
/// Grows with every change of the layout or of the protocol of its words.
const LAYOUT_VERSION: u32 = 4;

const AT_MAGIC: usize = 0;
const AT_VERSION: usize = 8;
const AT_RANK: usize = 12;
const AT_RANKS: usize = 16;
const AT_PID: usize = 20;
const AT_FLAGS: usize = 24;
const AT_STAGING_BYTES: usize = 32;
const AT_STAGING: usize = 40;
/// Posts and bytes of a post, for the collective board and those of pairs.
const AT_BOARDS: [usize; 4] = [48, 52, 56, 60];
/// Bytes the facts take.
pub(crate) const FACTS_BYTES: usize = 64;

/// Write the facts of `rank`.
pub(crate) fn write(
    segment: View<'_>,
    rank: u32,
    ranks: u32,
    layout: Layout,
) -> Result<(), MemoryError> {
    segment.write_u32(AT_VERSION, LAYOUT_VERSION)?;
    segment.write_u32(AT_RANK, rank)?;
    segment.write_u32(AT_RANKS, ranks)?;
    segment.write_u32(AT_PID, std::process::id())?;
    segment.write_u32(AT_FLAGS, layout.flags())?;
    segment.write_u64(AT_STAGING_BYTES, layout.staging_bytes() as u64)?;
    segment.write_u64(AT_STAGING, layout.staging() as u64)?;
    for (at, value) in AT_BOARDS.into_iter().zip(boards(layout)) {
        segment.write_u32(at, value)?;
    }
    segment.write_u64(AT_MAGIC, MAGIC)
}

/// The boards as four numbers; a layout's boards are far below 2^32 bytes.
const fn boards(layout: Layout) -> [u32; 4] {
    let Boards { collective, pair } = layout.boards();
    [collective.posts, collective.bytes as u32, pair.posts, pair.bytes as u32]
}

/// Compare the facts in the segment of `rank` with what they should be.
pub(crate) fn check(
    segment: View<'_>,
    rank: u32,
    ranks: u32,
    layout: Layout,
) -> Result<(), HostError> {
    let memory = |source| HostError::Memory { rank, source };
    let half = |offset| segment.read_u32(offset).map(u64::from).map_err(memory);
    let word = |offset| segment.read_u64(offset).map_err(memory);
    let facts = [
        ("the segment's length", segment.bytes() as u64, layout.segment_bytes() as u64),
        ("the magic number", word(AT_MAGIC)?, MAGIC),
        ("the layout version", half(AT_VERSION)?, LAYOUT_VERSION.into()),
        ("the rank", half(AT_RANK)?, rank.into()),
        ("the number of ranks", half(AT_RANKS)?, ranks.into()),
        ("the number of flags", half(AT_FLAGS)?, layout.flags().into()),
        ("the staging in bytes", word(AT_STAGING_BYTES)?, layout.staging_bytes() as u64),
        ("the offset of staging", word(AT_STAGING)?, layout.staging() as u64),
    ];
    let mut boards = AT_BOARDS.into_iter().zip(boards(layout));
    let board = boards.try_fold(None, |first: Option<(u64, u64)>, (at, expected)| {
        let (found, expected) = (half(at)?, u64::from(expected));
        Ok::<_, HostError>(first.or((found != expected).then_some((found, expected))))
    })?;
    let board = board.map(|(found, expected)| ("the shape of boards", found, expected));
    match facts.into_iter().find(|(_, found, expected)| found != expected).or(board) {
        None => Ok(()),
        Some((field, found, expected)) => Err(HostError::Header { rank, field, expected, found }),
    }
}

/// State word: what became of the rank in the low half, whom it blames in the high half.
pub(crate) const fn encode_state(state: RankState) -> u64 {
    match state {
        RankState::Running => 0,
        RankState::Closed => 1,
        RankState::Failed { culprit } => (culprit as u64) << 32 | 2,
    }
}

/// State of `rank` from its word. What no version writes counts as a failure of that rank.
pub(crate) const fn decode_state(word: u64, rank: u32) -> RankState {
    match (word as u32, (word >> 32) as u32) {
        (0, 0) => RankState::Running,
        (1, 0) => RankState::Closed,
        (2, culprit) => RankState::Failed { culprit },
        _ => RankState::Failed { culprit: rank },
    }
}

#[cfg(test)]
mod tests {
    use stepccl_engine::BoardShape;
    use stepccl_memory::Segment;

    use super::*;

    #[test]
    fn every_fact_is_compared() {
        let shape = |posts, bytes| BoardShape { posts, bytes };
        let boards = Boards { collective: shape(8, 100), pair: shape(4, 40) };
        let layout = Layout::new(4, 8, boards, 4096).unwrap();
        let segment = Segment::create("header", layout.segment_bytes()).unwrap();
        let view = segment.view();
        write(view, 1, 4, layout).unwrap();
        check(view, 1, 4, layout).unwrap();

        for at in [AT_VERSION, AT_RANK, AT_RANKS, AT_FLAGS].into_iter().chain(AT_BOARDS) {
            let right = view.read_u32(at).unwrap();
            view.write_u32(at, right + 1).unwrap();
            let answer = check(view, 1, 4, layout);
            assert!(
                matches!(answer, Err(HostError::Header { rank: 1, found, expected, .. })
                    if found == expected + 1),
                "{at}: {answer:?}"
            );
            view.write_u32(at, right).unwrap();
        }
        for at in [AT_MAGIC, AT_STAGING_BYTES, AT_STAGING] {
            let right = view.read_u64(at).unwrap();
            view.write_u64(at, right ^ 1 << 40).unwrap();
            assert!(matches!(check(view, 1, 4, layout), Err(HostError::Header { .. })), "{at}");
            view.write_u64(at, right).unwrap();
        }
        let longer = Layout::new(4, 8, boards, 4097).unwrap();
        assert!(matches!(check(view, 1, 4, longer), Err(HostError::Header { .. })));
        check(view, 1, 4, layout).unwrap();
    }

    #[test]
    fn states_survive_their_word_and_nonsense_is_a_failure() {
        for state in [
            RankState::Running,
            RankState::Closed,
            RankState::Failed { culprit: 0 },
            RankState::Failed { culprit: u32::MAX },
        ] {
            assert_eq!(decode_state(encode_state(state), 5), state);
        }
        for nonsense in [3, 1 << 32, u64::MAX] {
            assert_eq!(decode_state(nonsense, 5), RankState::Failed { culprit: 5 });
        }
    }
}
