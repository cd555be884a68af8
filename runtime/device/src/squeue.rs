//! The client's half of the submission queue.

use std::sync::Arc;

use dma_engine_uapi::SubmissionEntry;
use dma_engine_uapi::ring::{head_may_move, slot, sq_flags};

use crate::layout::check_entries;
use crate::{RingError, RingMemory, Word};

/// The client's half of the submission queue: fills slots and publishes the tail.
#[derive(Debug)]
pub struct SubmissionQueue<M> {
    memory: Arc<M>,
    entries: u32,
    /// Newest head the service told.
    head: u32,
    /// Tail the service knows.
    published: u32,
    /// Next slot to fill.
    tail: u32,
}

impl<M: RingMemory> SubmissionQueue<M> {
    /// The half over fresh memory. Indices of both sides begin at `start`, which is 0 for a ring
    /// of the driver.
    ///
    /// # Errors
    ///
    /// [`RingError::BadEntries`].
    pub fn new(memory: Arc<M>, entries: u32, start: u32) -> Result<Self, RingError> {
        check_entries("submission", entries)?;
        Ok(Self { memory, entries, head: start, published: start, tail: start })
    }

    /// Slots of the queue.
    #[must_use]
    pub const fn entries(&self) -> u32 {
        self.entries
    }

    /// Slots that are free. Looks at the shared head only where none is known to be.
    ///
    /// # Errors
    ///
    /// [`RingError::BadIndex`] where the service moved its head backwards or past the tail.
    pub fn room(&mut self) -> Result<u32, RingError> {
        if self.queued() == self.entries {
            // Acquire: the service has copied an entry before it moved the head past it, so the
            // slot may be written again.
            let found = self.memory.load_acquire(Word::SqHead)?;
            if !head_may_move(self.head, found, self.published) {
                let (from, to) = (self.head, self.published);
                return Err(RingError::BadIndex { word: Word::SqHead, found, from, to });
            }
            self.head = found;
        }
        Ok(self.entries - self.queued())
    }

    /// Put an entry into the next slot, unseen by the service until [`Self::publish`]. Returns
    /// false, and does nothing, where no slot is free.
    ///
    /// # Errors
    ///
    /// As [`Self::room`].
    pub fn push(&mut self, entry: &SubmissionEntry) -> Result<bool, RingError> {
        if self.room()? == 0 {
            return Ok(false);
        }
        self.memory.write_submission(slot(self.tail, self.entries), entry.to_words())?;
        self.tail = self.tail.wrapping_add(1);
        Ok(true)
    }

    /// Show everything pushed to the service, as one batch; returns how many entries are new.
    ///
    /// # Errors
    ///
    /// [`RingError::Memory`].
    pub fn publish(&mut self) -> Result<u32, RingError> {
        let new = self.tail.wrapping_sub(self.published);
        // Release: the entries are written before the tail that covers them.
        self.memory.store_release(Word::SqTail, self.tail)?;
        self.published = self.tail;
        Ok(new)
    }

    /// Whether the service sleeps and must be woken for what was published before this call.
    ///
    /// # Errors
    ///
    /// [`RingError::Memory`].
    pub fn needs_wakeup(&self) -> Result<bool, RingError> {
        // The tail was stored and now the flag is loaded; the service stores the flag and then
        // loads the tail. Without a full fence on both sides each could miss the other.
        self.memory.fence();
        Ok(self.flags()? & sq_flags::NEED_WAKEUP != 0)
    }

    /// The service's flags, `dma_engine_uapi::ring::sq_flags`.
    ///
    /// # Errors
    ///
    /// [`RingError::Memory`].
    pub fn flags(&self) -> Result<u32, RingError> {
        self.memory.load_relaxed(Word::SqFlags)
    }

    /// Slots between the newest known head and the tail. Own indices only, so never more than
    /// `entries`.
    const fn queued(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }
}
