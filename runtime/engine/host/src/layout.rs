//! Where things lie in the segment of one rank.
//!
//! | bytes | what | written by | read by |
//! |---|---|---|---|
//! | 0 .. 64 | facts of the rank, see [`header`](crate::header) | owner, once | all |
//! | 128 .. 136 | state word: what became of the rank | owner | all |
//! | 256 .. 260 | doorbell, a futex word that only grows | all | owner |
//! | 260 .. 264 | sleeping: 1 while the owner sleeps or is about to | owner | all |
//! | 4096 .. | flags, one `u64` in a line of its own each | owner | all |
//! | next page .. | staging | as the plan says | as the plan says |

use stepccl_plan::GRAIN_BYTES;

use crate::HostError;
use crate::header::FACTS_BYTES;

/// Alignment of staging, and of the segment's parts.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Offset of the state word.
pub(crate) const STATE: usize = 128;
/// Offset of the doorbell.
pub(crate) const DOORBELL: usize = 256;
/// Offset of the sleeping word.
pub(crate) const SLEEPING: usize = 260;
/// Offset of flag 0.
pub(crate) const FLAGS: usize = PAGE_BYTES;
/// Distance from a flag to the next: a cache line, so that flags do not disturb one another.
pub(crate) const FLAG_STRIDE: usize = GRAIN_BYTES;
/// Most flags of a rank.
pub(crate) const MAX_FLAGS: u32 = 1 << 16;
/// Longest staging. Collectives of any size pass through some MiB, so more is a mistake.
pub(crate) const MAX_STAGING_BYTES: u64 = 1 << 32;

const _: () = {
    assert!(FACTS_BYTES <= STATE && STATE + 8 <= DOORBELL && SLEEPING + 4 <= FLAGS);
    assert!(STATE / FLAG_STRIDE != DOORBELL / FLAG_STRIDE);
    // One look at the line tells a signaller whether to ring, and where.
    assert!(DOORBELL / FLAG_STRIDE == SLEEPING / FLAG_STRIDE);
};

/// Offsets and length of a segment, the same for every rank of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    flags: u32,
    staging_bytes: usize,
}

impl Layout {
    /// Layout of `flags` flags and `staging_bytes` bytes of staging.
    pub(crate) fn new(flags: u32, staging_bytes: u64) -> Result<Self, HostError> {
        if flags > MAX_FLAGS {
            return Err(HostError::TooManyFlags { flags, limit: MAX_FLAGS });
        }
        let too_long = HostError::StagingTooLong { staging_bytes, limit: MAX_STAGING_BYTES };
        match usize::try_from(staging_bytes) {
            Ok(bytes) if staging_bytes <= MAX_STAGING_BYTES && bytes <= isize::MAX as usize / 2 => {
                Ok(Self { flags, staging_bytes: bytes })
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

    /// Offset of staging, a multiple of [`PAGE_BYTES`].
    pub(crate) const fn staging(self) -> usize {
        Self::flag(self.flags).next_multiple_of(PAGE_BYTES)
    }

    /// Length of staging.
    pub(crate) const fn staging_bytes(self) -> usize {
        self.staging_bytes
    }

    /// Length of the segment.
    pub(crate) const fn segment_bytes(self) -> usize {
        self.staging() + self.staging_bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn limits() {
        assert!(Layout::new(MAX_FLAGS, MAX_STAGING_BYTES).is_ok());
        assert!(matches!(Layout::new(MAX_FLAGS + 1, 0), Err(HostError::TooManyFlags { .. })));
        assert!(matches!(
            Layout::new(0, MAX_STAGING_BYTES + 1),
            Err(HostError::StagingTooLong { .. })
        ));
        assert_eq!(Layout::new(0, 0).unwrap().segment_bytes(), PAGE_BYTES);
    }

    proptest! {
        #[test]
        fn parts_follow_one_another(flags in 0..=MAX_FLAGS, staging in 0..=MAX_STAGING_BYTES) {
            let layout = Layout::new(flags, staging).unwrap();
            prop_assert_eq!(layout.staging() % PAGE_BYTES, 0);
            prop_assert!(Layout::flag(flags) <= layout.staging());
            prop_assert!(layout.staging() - Layout::flag(flags) < PAGE_BYTES);
            prop_assert_eq!(layout.segment_bytes() as u64, layout.staging() as u64 + staging);
        }
    }
}
