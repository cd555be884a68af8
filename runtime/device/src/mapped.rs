//! Ring memory over a shared segment or a mapping of the device.

use std::sync::atomic::{AtomicU32, Ordering, fence};

use dma_engine_uapi::{CompletionEntry, SubmissionEntry};
use stepccl_memory::{Memory, Segment, View};

use crate::{RingError, RingLayout, RingMemory, Word};

/// A ring in shared memory.
///
/// Everything in it is touched by atomics, entries too: another thread or process that writes
/// while this one reads changes what is read, and nothing else.
#[derive(Debug)]
pub struct MappedRing<S = Segment> {
    memory: S,
    layout: RingLayout,
}

impl<S: Memory> MappedRing<S> {
    /// A ring of `layout` in `memory`.
    ///
    /// # Errors
    ///
    /// [`RingError::Memory`] where the memory is too short for the layout.
    pub fn new(memory: S, layout: RingLayout) -> Result<Self, RingError> {
        let ring = Self { memory, layout };
        for word in Word::ALL {
            ring.word(word)?;
        }
        ring.read_submission(layout.sq_entries() - 1)?;
        ring.read_completion(layout.cq_entries() - 1)?;
        Ok(ring)
    }

    /// Where things are.
    #[must_use]
    pub const fn layout(&self) -> &RingLayout {
        &self.layout
    }

    /// The memory, as the other side sees it.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        self.memory.view()
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

impl MappedRing {
    /// Another mapping of the same ring.
    ///
    /// # Errors
    ///
    /// [`RingError::Memory`] where the system refuses.
    pub fn try_clone(&self) -> Result<Self, RingError> {
        Self::new(self.memory.try_clone()?, self.layout)
    }
}

impl<S: Memory> RingMemory for MappedRing<S> {
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
