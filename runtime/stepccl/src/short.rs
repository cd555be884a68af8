//! A short collective from its call to its end, in as few instructions as may be.
//!
//! Most of what a short call takes is what comes before and after the message. So what was worked
//! out for the last call serves the next one alike, and a call whose peers are there already never
//! meets the queue.

use std::sync::MutexGuard;
use std::time::Duration;

use crate::communicator::check_timeout;
use crate::context::Advance;
use crate::eager::{self, EagerTask, Stage};
use crate::progress::Progress;
use crate::shape::Shape;
use crate::task::{COLLECTIVES, Member, Task};
use crate::work::{Keep, Outcome};
use crate::{Call, Communicator, Error};

impl Communicator {
    /// Run a collective on this thread to its end.
    ///
    /// # Safety
    ///
    /// As [`Communicator::run`].
    pub(crate) unsafe fn run_collective(&self, call: Call, timeout: Option<Duration>) -> Outcome {
        self.inner.check_process()?;
        check_timeout(timeout)?;
        if let Some(mut progress) = self.inner.alone()
            && self.has_shape(&mut progress, &call)?
        {
            // SAFETY:
            // - The caller promises the same.
            return unsafe { self.run_short(progress, call, timeout) };
        }
        self.inner.run([self.collective(call, timeout)?])
    }

    /// Whether `call` goes through posts; its shape is that of `progress` then, and it was checked.
    #[inline]
    fn has_shape(&self, progress: &mut Progress, call: &Call) -> Result<bool, Error> {
        match &progress.shape {
            Some(shape) if shape.is_of(call) => {
                call.check_memory(self.rank(), shape.inputs, shape.outputs, shape.block_bytes)?;
                Ok(true)
            }
            _ => self.find_shape(progress, call),
        }
    }

    #[cold]
    fn find_shape(&self, progress: &mut Progress, call: &Call) -> Result<bool, Error> {
        let is_eager = self.is_eager(call);
        if is_eager {
            call.check(self.rank(), self.ranks())?;
            progress.shape = Some(Shape::of(call, self.rank(), self.ranks()));
        }
        Ok(is_eager)
    }

    /// Run a call of the shape of `progress`, beside which there is nothing. Where the peers have
    /// called already it ends at once; else it goes on the way of all operations, from where it is.
    ///
    /// # Safety
    ///
    /// As [`Communicator::run`].
    #[inline]
    unsafe fn run_short(
        &self,
        mut progress: MutexGuard<'_, Progress>,
        call: Call,
        timeout: Option<Duration>,
    ) -> Outcome {
        if let Some(error) = progress.broken() {
            return Err(error);
        }
        let Progress { cx, shape: Some(shape), flight, .. } = &mut *progress else {
            drop(progress);
            return self.inner.run([self.collective(call, timeout)?]);
        };
        // Under the lock, so that one thread at a time adds.
        self.short_bytes.add(shape.message_bytes);
        let sequence = self.next_sequence();
        flight.posts(shape, sequence);
        let mut stage = Stage::new();
        // SAFETY:
        // - The caller promises that the memory is valid until the call ends.
        if matches!(unsafe { eager::advance(&call, shape, &mut stage, cx) }, Ok(Advance::Done)) {
            flight.ends_as(sequence, true);
            drop(progress);
            self.inner.hand_over();
            return Ok(());
        }
        // What failed fails again on that way, where it is known what follows.
        let shape = shape.clone();
        let identity = self.identity_of(&shape, sequence, timeout);
        // SAFETY:
        // - As above.
        let task = Task::Eager(unsafe { EagerTask::new(call, shape, stage) });
        let members = [Member { lane: COLLECTIVES, task, identity }];
        self.inner.to_the_end(self.inner.run_alone(progress, members, None, &Keep::default))
    }
}
