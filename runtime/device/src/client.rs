//! The side that submits.

use std::sync::Arc;
use std::time::Duration;

use dma_engine_uapi::{CompletionEntry, SubmissionEntry};

use crate::{
    CompletionQueue, Doorbell, RingError, RingLayout, RingMemory, Side, SubmissionQueue, Waited,
};

/// What became of an entry that was pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a full ring must be asked again"]
pub enum Push {
    /// It is in the queue.
    Queued,
    /// No slot is free. Publish what was pushed, read completions, and try again.
    Full,
}

/// The side that submits entries and reads completions. One thread at a time uses it.
///
/// It never has more operations under way than the completion queue has slots, so the service
/// never has to hold an entry back for want of one.
#[derive(Debug)]
pub struct Client<M> {
    memory: Arc<M>,
    submissions: SubmissionQueue<M>,
    completions: CompletionQueue<M>,
    outstanding: u32,
}

impl<M: RingMemory> Client<M> {
    /// The side over fresh memory. Indices of both sides begin at `start`, which is 0 for a ring
    /// of the driver.
    ///
    /// # Errors
    ///
    /// [`RingError::BadEntries`].
    pub fn new(memory: Arc<M>, layout: &RingLayout, start: u32) -> Result<Self, RingError> {
        Ok(Self {
            submissions: SubmissionQueue::new(memory.clone(), layout.sq_entries(), start)?,
            completions: CompletionQueue::new(memory.clone(), layout.cq_entries(), start)?,
            memory,
            outstanding: 0,
        })
    }

    /// Memory of the ring.
    #[must_use]
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Entries pushed whose completion was not read yet.
    #[must_use]
    pub const fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Put an entry into the queue; the service sees it after [`Self::publish`].
    ///
    /// # Errors
    ///
    /// As [`SubmissionQueue::room`].
    pub fn push(&mut self, entry: &SubmissionEntry) -> Result<Push, RingError> {
        if self.outstanding >= self.completions.entries() || !self.submissions.push(entry)? {
            return Ok(Push::Full);
        }
        self.outstanding += 1;
        Ok(Push::Queued)
    }

    /// The next completion, where there is one. Whether its `user_data` means something is for the
    /// caller to check.
    ///
    /// # Errors
    ///
    /// As [`CompletionQueue::ready`]; [`RingError::UnexpectedCompletion`] where nothing is under
    /// way.
    pub fn pop(&mut self) -> Result<Option<CompletionEntry>, RingError> {
        let Some(completion) = self.completions.pop()? else { return Ok(None) };
        match self.outstanding.checked_sub(1) {
            Some(rest) => self.outstanding = rest,
            None => {
                let user_data = completion.user_data;
                return Err(RingError::UnexpectedCompletion { user_data });
            }
        }
        Ok(Some(completion))
    }

    /// Times that entries had to wait for a completion slot, modulo 2^32. Stays 0 with this client
    /// and an honest service.
    ///
    /// # Errors
    ///
    /// [`RingError::Memory`].
    pub fn stalls(&self) -> Result<u32, RingError> {
        self.completions.stalls()
    }
}

impl<M: Doorbell> Client<M> {
    /// Show everything pushed to the service, as one batch, and wake it where it sleeps. Returns
    /// how many entries are new.
    ///
    /// # Errors
    ///
    /// The system refused to wake.
    pub fn publish(&mut self) -> Result<u32, RingError> {
        let new = self.submissions.publish()?;
        if new > 0 && self.submissions.needs_wakeup()? {
            self.memory.ring(Side::Service)?;
        }
        Ok(new)
    }

    /// Sleep until there is a completion, the service is gone or `limit` is over.
    ///
    /// # Errors
    ///
    /// As [`CompletionQueue::ready`]; the system refused to wait.
    pub fn wait(&mut self, limit: Duration) -> Result<Waited, RingError> {
        let seen = self.memory.bell(Side::Client);
        let ready = self.completions.announce_wait();
        if matches!(ready, Ok(0)) && !self.memory.other_gone(Side::Client) {
            self.memory.sleep(Side::Client, seen, limit)?;
        }
        self.completions.end_wait()?;
        ready?;
        // Asked before the last look: what a service posted before it left is still read.
        let gone = self.memory.other_gone(Side::Client);
        Ok(match self.completions.ready()? {
            0 if gone => Waited::Gone,
            0 => Waited::Idle,
            _ => Waited::Ready,
        })
    }
}
