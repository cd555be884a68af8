//! Ring memory over a shared segment.

use std::sync::atomic::{AtomicU32, Ordering, fence};

use dma_engine_uapi::{CompletionEntry, SubmissionEntry};
use stepccl_memory::{Segment, View};

use crate::{RingError, RingLayout, RingMemory, Word};

/// A ring in a shared segment.
///
/// Everything in it is touched by atomics, entries too: another thread or process that writes
/// while this one reads changes what is read, and nothing else.
#[derive(Debug)]
pub struct MappedRing {
    segment: Segment,
    layout: RingLayout,
}

impl MappedRing {
    /// A ring of `layout` in `segment`.
    ///
    /// # Errors
    ///
    /// [`RingError::Memory`] where the segment is too short for the layout.
    pub fn new(segment: Segment, layout: RingLayout) -> Result<Self, RingError> {
        let ring = Self { segment, layout };
        for word in Word::ALL {
            ring.word(word)?;
        }
        ring.read_submission(layout.sq_entries() - 1)?;
        ring.read_completion(layout.cq_entries() - 1)?;
        Ok(ring)
    }

    /// Another mapping of the same ring.
    ///
    /// # Errors
    ///
    /// [`RingError::Memory`] where the system refuses.
    pub fn try_clone(&self) -> Result<Self, RingError> {
        Self::new(self.segment.try_clone()?, self.layout)
    }

    /// Where things are.
    #[must_use]
    pub const fn layout(&self) -> &RingLayout {
        &self.layout
    }

    /// The memory, as the other side sees it.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        self.segment.view()
    }

    fn word(&self, word: Word) -> Result<&AtomicU32, RingError> {
        Ok(self.view().atomic_u32(self.layout.word(word) as usize)?)
    }

    fn read<const WORDS: usize>(&self, offset: usize) -> Result<[u64; WORDS], RingError> {
        let entry = self.view().part(offset, WORDS * 8)?;
        let mut words = [0; WORDS];
        for (index, word) in words.iter_mut().enumerate() {
            *word = entry.atomic_u64(index * 8)?.load(Ordering::Relaxed);
        }
        Ok(words)
    }

    fn write<const WORDS: usize>(
        &self,
        offset: usize,
        words: [u64; WORDS],
    ) -> Result<(), RingError> {
        let entry = self.view().part(offset, WORDS * 8)?;
        for (index, word) in words.into_iter().enumerate() {
            entry.atomic_u64(index * 8)?.store(word, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl RingMemory for MappedRing {
    fn load_relaxed(&self, word: Word) -> Result<u32, RingError> {
        Ok(self.word(word)?.load(Ordering::Relaxed))
    }

    fn load_acquire(&self, word: Word) -> Result<u32, RingError> {
        Ok(self.word(word)?.load(Ordering::Acquire))
    }

    fn store_relaxed(&self, word: Word, value: u32) -> Result<(), RingError> {
        self.word(word)?.store(value, Ordering::Relaxed);
        Ok(())
    }

    fn store_release(&self, word: Word, value: u32) -> Result<(), RingError> {
        self.word(word)?.store(value, Ordering::Release);
        Ok(())
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    fn read_submission(&self, slot: u32) -> Result<[u64; SubmissionEntry::WORDS], RingError> {
        self.read(self.layout.submission(slot))
    }

    fn write_submission(
        &self,
        slot: u32,
        words: [u64; SubmissionEntry::WORDS],
    ) -> Result<(), RingError> {
        self.write(self.layout.submission(slot), words)
    }

    fn read_completion(&self, slot: u32) -> Result<[u64; CompletionEntry::WORDS], RingError> {
        self.read(self.layout.completion(slot))
    }

    fn write_completion(
        &self,
        slot: u32,
        words: [u64; CompletionEntry::WORDS],
    ) -> Result<(), RingError> {
        self.write(self.layout.completion(slot), words)
    }
}
