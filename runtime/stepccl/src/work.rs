//! Handle of an operation that was started and may still run.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::Error;
use crate::inner::Inner;
use crate::task::Identity;

/// How an operation ended.
pub type Outcome = Result<(), Error>;

type Callback = Box<dyn FnOnce(&Outcome) + Send>;

/// State of an operation, shared by its handle and the thread that drives it.
#[derive(Default)]
pub(crate) struct WorkState {
    done: AtomicBool,
    end: Mutex<End>,
    ended: Condvar,
    source: OnceLock<u32>,
}

#[derive(Default)]
struct End {
    /// Operations of a group that are still to end, beside the last one.
    others: usize,
    /// How the first of those that failed ended.
    failed: Option<Error>,
    outcome: Option<Outcome>,
    callbacks: Vec<Callback>,
    nudged: bool,
}

impl fmt::Debug for WorkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkState").field("done", &self.is_done()).finish_non_exhaustive()
    }
}

impl WorkState {
    /// State of a group of `operations` operations, one at least.
    pub fn of_group(operations: usize) -> Self {
        let end = End { others: operations.saturating_sub(1), ..End::default() };
        Self { end: Mutex::new(end), ..Self::default() }
    }

    /// A receive from any source has met a message of `rank`.
    pub fn set_source(&self, rank: u32) {
        // It meets one message only.
        let _ = self.source.set(rank);
    }

    pub fn source(&self) -> Option<u32> {
        self.source.get().copied()
    }

    fn end(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    pub fn outcome(&self) -> Option<Outcome> {
        self.end().outcome.clone()
    }

    /// Sleep until the operation has ended or `nudge` is called, `limit` at most.
    pub fn sleep(&self, limit: Duration) {
        let mut end = self.end();
        if end.outcome.is_none() && !std::mem::take(&mut end.nudged) {
            drop(self.ended.wait_timeout(end, limit));
        }
    }

    /// End the present or the next `sleep`.
    pub fn nudge(&self) {
        self.end().nudged = true;
        self.ended.notify_all();
    }

    /// Record the end of an operation; returns what is to be called with which outcome.
    pub fn finish(&self, outcome: Outcome) -> Called {
        let mut end = self.end();
        // The error that broke the communicator says more than that it is broken.
        let quotes = |error: &Error| matches!(error, Error::Broken { .. });
        let outcome = match (end.failed.take(), outcome) {
            (Some(before), Err(error)) if quotes(&before) && !quotes(&error) => Err(error),
            (Some(before), _) => Err(before),
            (None, outcome) => outcome,
        };
        if end.others > 0 {
            end.others -= 1;
            end.failed = outcome.err();
            return Called { callbacks: Vec::new(), outcome: Ok(()) };
        }
        end.outcome = Some(outcome.clone());
        self.done.store(true, Ordering::Release);
        self.ended.notify_all();
        Called { callbacks: std::mem::take(&mut end.callbacks), outcome }
    }

    fn on_done(&self, callback: Callback) {
        let outcome = {
            let mut end = self.end();
            match &end.outcome {
                None => {
                    end.callbacks.push(callback);
                    return;
                }
                Some(outcome) => outcome.clone(),
            }
        };
        Called { callbacks: vec![callback], outcome }.call();
    }
}

/// An operation that has ended, with what must be dropped outside of all locks.
#[derive(Debug)]
pub(crate) struct Ended {
    pub state: Arc<WorkState>,
    pub outcome: Outcome,
    pub keep: Keep,
}

impl Ended {
    /// Make the end known. Must not be called under a lock that a destructor may want.
    pub fn finish(self) -> Called {
        let Self { state, outcome, keep } = self;
        // What was kept alive for the operation goes first: a waiter may reuse it. A panic is for
        // the panic hook; here it must not keep others from hearing of their end.
        let _ = catch_unwind(AssertUnwindSafe(move || drop(keep)));
        state.finish(outcome)
    }
}

/// What is to be called after an end.
pub(crate) struct Called {
    callbacks: Vec<Callback>,
    outcome: Outcome,
}

impl Called {
    /// Call it. Must not be called under a lock that a callback may want.
    pub fn call(self) {
        for callback in self.callbacks {
            // As above: what panics is reported by the panic hook, and the others are called.
            let _ = catch_unwind(AssertUnwindSafe(|| callback(&self.outcome)));
        }
    }
}

/// Anything that must live as long as an operation runs.
#[derive(Default)]
pub struct Keep(Option<Box<dyn Any + Send>>);

impl Keep {
    /// Keep `value` alive.
    #[must_use]
    pub fn new(value: impl Any + Send) -> Self {
        Self(Some(Box::new(value)))
    }

    pub(crate) const fn holds(&self) -> bool {
        self.0.is_some()
    }

    /// As many that keep the same alive, until the last of them goes.
    pub(crate) fn shared(self, times: usize) -> Vec<Self> {
        match self.0 {
            None => (0..times).map(|_| Self::default()).collect(),
            Some(value) => {
                // Behind a lock that nobody takes: what is kept need not be safe to share.
                let value = Arc::new(Mutex::new(value));
                (0..times).map(|_| Self::new(Arc::clone(&value))).collect()
            }
        }
    }
}

impl fmt::Debug for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Keep(something)" } else { "Keep(nothing)" })
    }
}

/// Handle of an operation that was started.
///
/// Dropping it does not stop the operation. Any thread may wait; several may wait for the same.
#[derive(Clone, Debug)]
pub struct Work {
    pub(crate) inner: Arc<Inner>,
    pub(crate) state: Arc<WorkState>,
    pub(crate) lane: usize,
    pub(crate) identity: Identity,
}

impl Work {
    /// Whether the operation has ended, well or not. Never blocks.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state.is_done()
    }

    /// How it ended, where it has.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        self.state.outcome()
    }

    /// Rank whose message a receive from any source has taken; none before, and for every other
    /// operation.
    #[must_use]
    pub fn source(&self) -> Option<u32> {
        self.state.source()
    }

    /// Wait until the operation has ended. The waiting thread does the work meanwhile.
    ///
    /// The operation's own timeout ends the wait. A shorter `limit` only ends this wait; the
    /// operation goes on.
    ///
    /// # Errors
    ///
    /// The error the operation ended with, or [`Error::Timeout`] where `limit` was over.
    pub fn wait(&self, limit: Option<Duration>) -> Outcome {
        self.inner.check_process()?;
        let started = Instant::now();
        // A limit past the end of time is none.
        self.inner.drive_until(&self.state, limit.and_then(|l| started.checked_add(l)));
        self.outcome().unwrap_or_else(|| Err(self.is_over(started.elapsed())))
    }

    /// Call `callback` once the operation has ended: at once where it has, otherwise on the thread
    /// that ends it, so it must be short and should not wait for operations. It may start some. A
    /// panic in it goes to the panic hook and no further.
    pub fn on_done(&self, callback: impl FnOnce(&Outcome) + Send + 'static) {
        self.state.on_done(Box::new(callback));
        self.inner.kick_worker();
    }
}
