//! The client's half of the completion queue.

use std::sync::Arc;

use dma_engine_uapi::CompletionEntry;
use dma_engine_uapi::ring::{cq_flags, distance, slot, sq_flags};

use crate::layout::check_entries;
use crate::{RingError, RingMemory, Word};

/// The client's half of the completion queue: reads completions and frees their slots.
#[derive(Debug)]
pub struct CompletionQueue<M> {
    memory: Arc<M>,
    entries: u32,
    /// Next completion to read.
    head: u32,
    /// Newest tail the service told.
    tail: u32,
}

impl<M: RingMemory> CompletionQueue<M> {
    /// The half over fresh memory. Indices of both sides begin at `start`, which is 0 for a ring
    /// of the driver.
    ///
    /// # Errors
    ///
    /// [`RingError::BadEntries`].
    pub fn new(memory: Arc<M>, entries: u32, start: u32) -> Result<Self, RingError> {
        check_entries("completion", entries)?;
        Ok(Self { memory, entries, head: start, tail: start })
    }

    /// Slots of the queue.
    #[must_use]
    pub const fn entries(&self) -> u32 {
        self.entries
    }

    /// Completions that can be read now.
    ///
    /// # Errors
    ///
    /// [`RingError::BadIndex`] where the service moved its tail backwards or too far;
    /// [`RingError::Failed`] where there is none and the service has given the ring up.
    pub fn ready(&mut self) -> Result<u32, RingError> {
        if self.known() == 0 && self.refresh()? == 0 {
            // Acquire: what was completed before the ring failed is visible, so look once more.
            let failed = self.memory.load_acquire(Word::SqFlags)? & sq_flags::FAILED != 0;
            if failed && self.refresh()? == 0 {
                return Err(RingError::Failed);
            }
        }
        Ok(self.known())
    }

    /// The next completion, where there is one.
    ///
    /// # Errors
    ///
    /// As [`Self::ready`].
    pub fn pop(&mut self) -> Result<Option<CompletionEntry>, RingError> {
        if self.ready()? == 0 {
            return Ok(None);
        }
        let words = self.memory.read_completion(slot(self.head, self.entries))?;
        self.head = self.head.wrapping_add(1);
        // Release: the completion is copied before its slot is free.
        self.memory.store_release(Word::CqHead, self.head)?;
        Ok(Some(CompletionEntry::from_words(words)))
    }

    /// Tell the service that this side is about to sleep; then look for completions once more.
    ///
    /// # Errors
    ///
    /// As [`Self::ready`].
    pub fn announce_wait(&mut self) -> Result<u32, RingError> {
        self.memory.store_relaxed(Word::CqFlags, cq_flags::WAITING)?;
        // The flag was stored and now the tail is loaded; the service stores the tail and then
        // loads the flag. Without a full fence on both sides each could miss the other.
        self.memory.fence();
        self.ready()
    }

    /// Take back [`Self::announce_wait`].
    ///
    /// # Errors
    ///
    /// [`RingError::Memory`].
    pub fn end_wait(&self) -> Result<(), RingError> {
        self.memory.store_relaxed(Word::CqFlags, 0)
    }

    /// Times that entries had to wait for a completion slot, modulo 2^32.
    ///
    /// # Errors
    ///
    /// [`RingError::Memory`].
    pub fn stalls(&self) -> Result<u32, RingError> {
        self.memory.load_relaxed(Word::CqStalls)
    }

    const fn known(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// Only called where no completion is known, so that a tail cannot go back unseen.
    fn refresh(&mut self) -> Result<u32, RingError> {
        // Acquire: the completions are written before the tail that covers them.
        let found = self.memory.load_acquire(Word::CqTail)?;
        let Some(count) = distance(self.head, found, self.entries) else {
            let (from, to) = (self.head, self.head.wrapping_add(self.entries));
            return Err(RingError::BadIndex { word: Word::CqTail, found, from, to });
        };
        self.tail = found;
        Ok(count)
    }
}
