//! Where things are in the mapping, checked before anything is touched.

use dma_engine_uapi::ring::{ENTRY_ALIGN, WORD_BYTES};
use dma_engine_uapi::{CompletionEntry, RingOffsets, SubmissionEntry};

use crate::{RingError, Word};

/// Most entries of a queue.
pub const MAX_ENTRIES: u32 = 1 << 16;

/// Offsets that set-up returned, known to lie in the mapping, aligned and apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingLayout {
    offsets: RingOffsets,
    sq_entries: u32,
    cq_entries: u32,
}

impl RingLayout {
    /// Check what set-up returned for a mapping of `map_bytes` bytes.
    ///
    /// # Errors
    ///
    /// [`RingError::BadEntries`], [`RingError::OffsetOutOfBounds`],
    /// [`RingError::OffsetMisaligned`] or [`RingError::OffsetsOverlap`].
    pub fn new(
        offsets: RingOffsets,
        sq_entries: u32,
        cq_entries: u32,
        map_bytes: u64,
    ) -> Result<Self, RingError> {
        check_entries("submission", sq_entries)?;
        check_entries("completion", cq_entries)?;
        let layout = Self { offsets, sq_entries, cq_entries };
        let mut places = layout.places();
        for place in &places {
            place.check(map_bytes)?;
        }
        places.sort_by_key(|place| place.offset);
        match places.windows(2).find(|pair| pair[0].end() > u64::from(pair[1].offset)) {
            Some(pair) => Err(RingError::OffsetsOverlap {
                first: pair[0].what,
                first_offset: pair[0].offset,
                second: pair[1].what,
                second_offset: pair[1].offset,
            }),
            None => Ok(layout),
        }
    }

    /// A layout of our own for memory of the process, and the bytes it takes.
    ///
    /// # Errors
    ///
    /// [`RingError::BadEntries`].
    pub fn of(sq_entries: u32, cq_entries: u32) -> Result<(Self, u32), RingError> {
        check_entries("submission", sq_entries)?;
        check_entries("completion", cq_entries)?;
        let (offsets, bytes) = RingOffsets::lay_out(sq_entries, cq_entries)
            .ok_or_else(|| bad_entries("completion", cq_entries))?;
        let layout = Self::new(offsets, sq_entries, cq_entries, u64::from(bytes))?;
        Ok((layout, bytes))
    }

    /// Slots of the submission queue.
    #[must_use]
    pub const fn sq_entries(&self) -> u32 {
        self.sq_entries
    }

    /// Slots of the completion queue.
    #[must_use]
    pub const fn cq_entries(&self) -> u32 {
        self.cq_entries
    }

    /// Offset of a word in bytes.
    #[must_use]
    pub const fn word(&self, word: Word) -> u32 {
        match word {
            Word::SqHead => self.offsets.sq_head,
            Word::SqTail => self.offsets.sq_tail,
            Word::SqFlags => self.offsets.sq_flags,
            Word::CqHead => self.offsets.cq_head,
            Word::CqTail => self.offsets.cq_tail,
            Word::CqFlags => self.offsets.cq_flags,
            Word::CqStalls => self.offsets.cq_stalls,
        }
    }

    /// Offset of a submission slot in bytes.
    pub(crate) const fn submission(&self, slot: u32) -> usize {
        self.offsets.sq_entries as usize + slot as usize * size_of::<SubmissionEntry>()
    }

    /// Offset of a completion slot in bytes.
    pub(crate) const fn completion(&self, slot: u32) -> usize {
        self.offsets.cq_entries as usize + slot as usize * size_of::<CompletionEntry>()
    }

    fn places(&self) -> Vec<Place> {
        let words = Word::ALL.iter().map(|word| Place {
            what: word.name(),
            offset: self.word(*word),
            bytes: u64::from(WORD_BYTES),
            align: WORD_BYTES,
        });
        let submissions = Place {
            what: "sq_entries",
            offset: self.offsets.sq_entries,
            bytes: u64::from(self.sq_entries) * size_of::<SubmissionEntry>() as u64,
            align: ENTRY_ALIGN,
        };
        let completions = Place {
            what: "cq_entries",
            offset: self.offsets.cq_entries,
            bytes: u64::from(self.cq_entries) * size_of::<CompletionEntry>() as u64,
            align: ENTRY_ALIGN,
        };
        words.chain([submissions, completions]).collect()
    }
}

/// A range of the mapping.
struct Place {
    what: &'static str,
    offset: u32,
    bytes: u64,
    align: u32,
}

impl Place {
    /// Cannot overflow: 2^32 and 2^16 entries of 64 bytes.
    fn end(&self) -> u64 {
        u64::from(self.offset) + self.bytes
    }

    fn check(&self, limit: u64) -> Result<(), RingError> {
        let Self { what, offset, bytes, align } = *self;
        if !offset.is_multiple_of(align) {
            return Err(RingError::OffsetMisaligned { what, offset, align });
        }
        if self.end() > limit {
            return Err(RingError::OffsetOutOfBounds { what, offset, bytes, limit });
        }
        Ok(())
    }
}

fn bad_entries(queue: &'static str, entries: u32) -> RingError {
    RingError::BadEntries { queue, entries, limit: MAX_ENTRIES }
}

pub(crate) fn check_entries(queue: &'static str, entries: u32) -> Result<(), RingError> {
    if entries.is_power_of_two() && entries <= MAX_ENTRIES {
        Ok(())
    } else {
        Err(bad_entries(queue, entries))
    }
}
