//! The side that takes entries and posts completions, as the driver or a worker thread plays it.

use std::sync::Arc;
use std::time::Duration;

use dma_engine_uapi::ring::{cq_flags, distance, head_may_move, slot, sq_flags};
use dma_engine_uapi::{CompletionEntry, SubmissionEntry};

use crate::layout::check_entries;
use crate::{Doorbell, RingError, RingLayout, RingMemory, Side, Waited, Word};

/// What [`Service::take`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// A copy of the next entry, which nobody else can change. Nothing in it is checked.
    Entry(SubmissionEntry),
    /// No entry waits.
    Empty,
    /// An entry waits, but no completion slot is free for it.
    NoRoom,
}

/// The side that takes entries and posts completions. One thread at a time uses it.
///
/// A completion slot is set aside with every entry taken, so a completion always finds room. The
/// client's words are claims: one that cannot be is answered by failing the ring.
#[derive(Debug)]
pub struct Service<M> {
    memory: Arc<M>,
    sq_entries: u32,
    cq_entries: u32,
    /// Next entry to take.
    sq_head: u32,
    /// Newest tail the client told; up to here reaches the batch.
    sq_tail: u32,
    /// Newest head the client told.
    cq_head: u32,
    /// Next completion slot to fill.
    cq_tail: u32,
    /// Entries taken and not completed: completion slots set aside.
    in_flight: u32,
    /// What `sq_flags` is, so that it is never read back.
    flags: u32,
    stalls: u32,
}

impl<M: RingMemory> Service<M> {
    /// The side over fresh memory. Indices of both sides begin at `start`, which is 0 for a ring
    /// of the driver.
    ///
    /// # Errors
    ///
    /// [`RingError::BadEntries`].
    pub fn new(memory: Arc<M>, layout: &RingLayout, start: u32) -> Result<Self, RingError> {
        check_entries("submission", layout.sq_entries())?;
        check_entries("completion", layout.cq_entries())?;
        Ok(Self {
            memory,
            sq_entries: layout.sq_entries(),
            cq_entries: layout.cq_entries(),
            sq_head: start,
            sq_tail: start,
            cq_head: start,
            cq_tail: start,
            in_flight: 0,
            flags: 0,
            stalls: 0,
        })
    }

    /// Memory of the ring.
    #[must_use]
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Entries taken and not completed.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Entries of the batch that are still to be taken; 0 after its last one, where a chain ends.
    #[must_use]
    pub const fn batch_left(&self) -> u32 {
        self.sq_tail.wrapping_sub(self.sq_head)
    }

    /// Take the next entry and set a completion slot aside for it.
    ///
    /// # Errors
    ///
    /// [`RingError::BadIndex`] where the client moved an index to where it cannot be: the ring has
    /// failed then. [`RingError::Failed`] from then on.
    pub fn take(&mut self) -> Result<Taken, RingError> {
        if !self.entry_waits()? {
            return Ok(Taken::Empty);
        }
        if !self.has_room()? {
            if self.flags & sq_flags::CQ_FULL == 0 {
                self.stalls = self.stalls.wrapping_add(1);
                self.memory.store_relaxed(Word::CqStalls, self.stalls)?;
                self.set_flags(self.flags | sq_flags::CQ_FULL)?;
            }
            return Ok(Taken::NoRoom);
        }
        if self.flags & sq_flags::CQ_FULL != 0 {
            self.set_flags(self.flags & !sq_flags::CQ_FULL)?;
        }
        // The only look at the entry: whoever checks it checks this copy.
        let words = self.memory.read_submission(slot(self.sq_head, self.sq_entries))?;
        self.sq_head = self.sq_head.wrapping_add(1);
        self.in_flight += 1;
        // Release: the entry is copied before its slot is free.
        self.memory.store_release(Word::SqHead, self.sq_head)?;
        Ok(Taken::Entry(SubmissionEntry::from_words(words)))
    }

    /// Post the completion of an entry that was taken. Also after the ring has failed.
    ///
    /// # Errors
    ///
    /// [`RingError::NothingInFlight`] where every entry taken has completed.
    pub fn complete(&mut self, completion: &CompletionEntry) -> Result<(), RingError> {
        let Some(rest) = self.in_flight.checked_sub(1) else {
            return Err(RingError::NothingInFlight { user_data: completion.user_data });
        };
        self.memory.write_completion(slot(self.cq_tail, self.cq_entries), completion.to_words())?;
        self.in_flight = rest;
        self.cq_tail = self.cq_tail.wrapping_add(1);
        // Release: the completion is written before the tail that covers it.
        self.memory.store_release(Word::CqTail, self.cq_tail)
    }

    /// Whether the client sleeps and must be woken for what was completed before this call.
    ///
    /// # Errors
    ///
    /// [`RingError::Memory`].
    pub fn client_waits(&self) -> Result<bool, RingError> {
        // Pairs with the fence of the client that stores the flag and then loads the tail.
        self.memory.fence();
        Ok(self.memory.load_relaxed(Word::CqFlags)? & cq_flags::WAITING != 0)
    }

    /// Tell the client that this side is about to sleep; then look for work once more. True where
    /// there is some.
    ///
    /// # Errors
    ///
    /// As [`Self::take`].
    pub fn announce_sleep(&mut self) -> Result<bool, RingError> {
        self.set_flags(self.flags | sq_flags::NEED_WAKEUP)?;
        // Pairs with the fence of the client that stores the tail and then loads the flag.
        self.memory.fence();
        Ok(self.entry_waits()? && self.has_room()?)
    }

    /// Take back [`Self::announce_sleep`].
    ///
    /// # Errors
    ///
    /// [`RingError::Memory`].
    pub fn end_sleep(&mut self) -> Result<(), RingError> {
        self.set_flags(self.flags & !sq_flags::NEED_WAKEUP)
    }

    /// Whether an entry waits.
    fn entry_waits(&mut self) -> Result<bool, RingError> {
        if self.flags & sq_flags::FAILED != 0 {
            return Err(RingError::Failed);
        }
        if self.batch_left() == 0 {
            // Acquire: the entries are written before the tail that covers them.
            let found = self.memory.load_acquire(Word::SqTail)?;
            if distance(self.sq_head, found, self.sq_entries).is_none() {
                let (from, to) = (self.sq_head, self.sq_head.wrapping_add(self.sq_entries));
                return Err(self.fail(Word::SqTail, found, from, to));
            }
            self.sq_tail = found;
        }
        Ok(self.batch_left() > 0)
    }

    /// Whether a completion slot is neither taken nor set aside.
    fn has_room(&mut self) -> Result<bool, RingError> {
        if self.completion_slots_used() == self.cq_entries {
            // Acquire: the client has copied a completion before it moved the head past it, so
            // the slot may be written again.
            let found = self.memory.load_acquire(Word::CqHead)?;
            if !head_may_move(self.cq_head, found, self.cq_tail) {
                return Err(self.fail(Word::CqHead, found, self.cq_head, self.cq_tail));
            }
            self.cq_head = found;
        }
        Ok(self.completion_slots_used() < self.cq_entries)
    }

    /// Own indices only, so never more than `cq_entries`.
    const fn completion_slots_used(&self) -> u32 {
        self.cq_tail.wrapping_sub(self.cq_head) + self.in_flight
    }

    fn fail(&mut self, word: Word, found: u32, from: u32, to: u32) -> RingError {
        match self.set_flags(self.flags | sq_flags::FAILED) {
            Ok(()) => RingError::BadIndex { word, found, from, to },
            Err(error) => error,
        }
    }

    fn set_flags(&mut self, flags: u32) -> Result<(), RingError> {
        self.flags = flags;
        // Release: a client that sees the ring failed sees what was completed before.
        self.memory.store_release(Word::SqFlags, flags)
    }
}

impl<M: Doorbell> Service<M> {
    /// Wake the client where it sleeps; after one or several completions.
    ///
    /// # Errors
    ///
    /// The system refused to wake.
    pub fn notify(&self) -> Result<(), RingError> {
        if self.client_waits()? { self.memory.ring(Side::Client) } else { Ok(()) }
    }

    /// Sleep until an entry can be taken, the client is gone or `limit` is over.
    ///
    /// A client of this crate rings for every entry that it publishes. One that lets the
    /// completion queue run full and then reads from it does not: that wait ends with `limit`.
    ///
    /// # Errors
    ///
    /// As [`Self::take`]; the system refused to wait.
    pub fn wait(&mut self, limit: Duration) -> Result<Waited, RingError> {
        let seen = self.memory.bell(Side::Service);
        let ready = self.announce_sleep();
        if matches!(ready, Ok(false)) && !self.memory.other_gone(Side::Service) {
            self.memory.sleep(Side::Service, seen, limit)?;
        }
        self.end_sleep()?;
        ready?;
        // Asked before the last look: what a client published before it left is still taken.
        let gone = self.memory.other_gone(Side::Service);
        Ok(match self.entry_waits()? && self.has_room()? {
            true => Waited::Ready,
            false if gone => Waited::Gone,
            false => Waited::Idle,
        })
    }
}
