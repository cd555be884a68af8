//! What the handles of a communicator share: the queue, the drivers, the worker.
//!
//! Operations are driven by whoever waits for them; a worker thread drives only what nobody waits
//! for. Lock order: `progress` before `inbox`; callbacks run under no lock.

mod worker;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use stepccl_engine::{Meter, Wake};

use crate::error::{Error, OperationName, With};
use crate::flight::Flight;
use crate::forked::Maker;
use crate::progress::{Abort, FEW, Patience, Progress, Ran};
use crate::task::{Entry, Identity, Member, Task};
use crate::work::{Called, Ended, Keep, Outcome, Work, WorkState};
use worker::Worker;

/// Longest sleep of a thread that waits while another one drives. Who stops driving wakes it; this
/// is for the case that the two miss one another.
const STAND_BY: Duration = Duration::from_millis(1);

/// How long a thread that waits for all operations drives before it looks whether any is left.
const DRAIN: Duration = Duration::from_millis(1);

/// Shared state of a communicator.
#[derive(Debug)]
pub(crate) struct Inner {
    pub name: String,
    pub rank: u32,
    pub ranks: u32,
    pub patience: Patience,
    /// Name and counters of the engine, which only its driver may touch.
    pub engine: &'static str,
    pub meter: Arc<Meter>,
    progress: Mutex<Progress>,
    inbox: Mutex<Vec<Entry>>,
    /// Entries of the inbox.
    queued: AtomicUsize,
    /// Operations started and not yet ended, of the inbox and of the lanes.
    unfinished: AtomicUsize,
    /// Threads that wait for an operation and so drive.
    waiting: AtomicUsize,
    /// What those of them wait for that sleep while another one drives.
    standing_by: Mutex<Vec<Arc<WorkState>>>,
    waker: Arc<dyn Wake>,
    abort: Arc<Abort>,
    worker: Worker,
    flight: Arc<Flight>,
    maker: Maker,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere must not take the communicator's other users down with it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    pub fn new(name: String, progress: Progress, abort: Arc<Abort>, patience: Patience) -> Self {
        let flight = Arc::clone(&progress.flight);
        Self {
            name,
            rank: progress.cx.rank,
            ranks: progress.cx.ranks,
            patience,
            engine: progress.cx.engine.name(),
            meter: progress.cx.engine.meter(),
            waker: progress.cx.engine.waker(),
            progress: Mutex::new(progress),
            inbox: Mutex::default(),
            queued: AtomicUsize::new(0),
            unfinished: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            standing_by: Mutex::default(),
            abort,
            worker: Worker::default(),
            flight,
            maker: Maker::this(),
        }
    }

    /// Whether this process may use the communicator at all.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] in a process that was forked from its own.
    #[inline]
    pub fn check_process(&self) -> Result<(), Error> {
        if self.maker.is_this() { Ok(()) } else { Err(self.forked()) }
    }

    #[cold]
    fn forked(&self) -> Error {
        Error::NotSupported {
            what: format!(
                "communicator '{}', rank {}, in a process that was forked",
                self.name, self.rank
            ),
            why: format!(
                "it belongs to process {}; make another one here, or start this process anew (spawn \
                 in place of fork)",
                self.maker.pid
            ),
        }
    }

    fn try_progress(&self) -> Option<MutexGuard<'_, Progress>> {
        match self.progress.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Run operations on this thread to their end, at the same time where their lanes differ.
    pub fn run<M>(&self, members: M) -> Outcome
    where
        M: AsMut<[Member]> + IntoIterator<Item = Member>,
    {
        self.to_the_end(self.run_for(members, None, &Keep::default))
    }

    /// Drive until what was queued has ended.
    pub fn to_the_end(&self, ran: Result<Outcome, Arc<WorkState>>) -> Outcome {
        match ran {
            Ok(outcome) => outcome,
            Err(state) => self.wait_to_the_end(&state),
        }
    }

    /// As `run`, for about `pause` at most. Operations that have not ended by then, or that others
    /// stand before, are queued with what `keep` returns.
    ///
    /// # Errors
    ///
    /// The state of those that are queued.
    pub fn run_for<M>(
        &self,
        mut members: M,
        pause: Option<Duration>,
        keep: &dyn Fn() -> Keep,
    ) -> Result<Outcome, Arc<WorkState>>
    where
        M: AsMut<[Member]> + IntoIterator<Item = Member>,
    {
        if need_no_queue(members.as_mut())
            && let Some(progress) = self.alone()
        {
            if let Some(error) = progress.broken() {
                return Ok(Err(error));
            }
            members.as_mut().iter().for_each(|member| self.flight.runs(member));
            return self.run_alone(progress, members, pause, keep);
        }
        Err(self.queue(members, keep))
    }

    /// The drive, where nobody has it and nothing is under way or queued.
    #[inline]
    pub fn alone(&self) -> Option<MutexGuard<'_, Progress>> {
        if self.queued.load(Ordering::Acquire) > 0 {
            return None;
        }
        self.try_progress().filter(|progress| progress.is_empty())
    }

    /// Run operations that are in the record as begun, with nothing beside them; as `run_for`.
    pub fn run_alone<M>(
        &self,
        mut progress: MutexGuard<'_, Progress>,
        mut members: M,
        pause: Option<Duration>,
        keep: &dyn Fn() -> Keep,
    ) -> Result<Outcome, Arc<WorkState>>
    where
        M: AsMut<[Member]> + IntoIterator<Item = Member>,
    {
        let left = match progress.run(members.as_mut(), self.patience, &self.queued, pause) {
            Ran::Ended(outcome) => {
                drop(progress);
                self.hand_over();
                return Ok(outcome);
            }
            Ran::Interrupted(left) => left,
        };
        // They were first: they go into their lanes before the inbox is emptied.
        let state = Arc::new(WorkState::of_group(left.count()));
        self.unfinished.fetch_add(left.count(), Ordering::AcqRel);
        let members = members.into_iter().enumerate().filter(|(at, _)| left.has(*at));
        for ((_, mut member), keep) in members.zip(keep().shared(left.count())) {
            member.identity.start();
            progress.add(member.queued(&state, keep));
        }
        drop(progress);
        Err(state)
    }

    /// Queue operations for whoever drives.
    pub fn queue<M>(&self, mut members: M, keep: &dyn Fn() -> Keep) -> Arc<WorkState>
    where
        M: AsMut<[Member]> + IntoIterator<Item = Member>,
    {
        let count = members.as_mut().len();
        let state = Arc::new(WorkState::of_group(count));
        let keeps = keep().shared(count);
        self.enqueue(members.into_iter().zip(keeps).map(|(m, keep)| m.queued(&state, keep)));
        state
    }

    fn wait_to_the_end(&self, state: &Arc<WorkState>) -> Outcome {
        loop {
            self.drive_until(state, None);
            if let Some(outcome) = state.outcome() {
                return outcome;
            }
        }
    }

    /// Start an operation that goes on while the caller does something else.
    pub fn start(self: &Arc<Self>, entry: Entry) -> Work {
        let work = Work {
            inner: Arc::clone(self),
            state: Arc::clone(&entry.state),
            lane: entry.lane,
            identity: entry.identity,
        };
        self.enqueue([entry]);
        self.spawn_worker();
        self.kick_worker();
        work
    }

    /// Start operations that share a state; `lane` and `identity` are for messages about all.
    pub fn start_all(
        self: &Arc<Self>,
        entries: impl IntoIterator<Item = Entry>,
        state: Arc<WorkState>,
        lane: usize,
        identity: Identity,
    ) -> Work {
        self.enqueue(entries);
        self.spawn_worker();
        self.kick_worker();
        Work { inner: Arc::clone(self), state, lane, identity }
    }

    /// Put entries into the inbox; nothing of another thread comes between them.
    fn enqueue(&self, entries: impl IntoIterator<Item = Entry>) {
        let now = Instant::now();
        let mut inbox = lock(&self.inbox);
        let before = inbox.len();
        inbox.extend(entries.into_iter().map(|mut entry| {
            entry.identity.started.get_or_insert(now);
            self.flight.queues(&entry);
            entry
        }));
        let count = inbox.len() - before;
        self.unfinished.fetch_add(count, Ordering::AcqRel);
        self.queued.fetch_add(count, Ordering::AcqRel);
        drop(inbox);
        self.waker.wake();
    }

    /// Drive operations until `state` is done or `limit` is over.
    pub fn drive_until(&self, state: &Arc<WorkState>, limit: Option<Instant>) {
        if state.is_done() {
            return;
        }
        let over = || state.is_done() || limit.is_some_and(|l| Instant::now() >= l);
        let _waiting = Waiting::new(self);
        if self.worker.is_driving() {
            self.waker.wake();
        }
        while !over() {
            match self.try_progress() {
                Some(progress) => self.drive(progress, self.patience, limit, &over),
                None if self.worker.is_driving() => {
                    self.waker.wake();
                    std::thread::yield_now();
                }
                // Another thread that waits drives all operations, this one too.
                None => {
                    if let Some(progress) = self.stand_by(state, limit) {
                        self.drive(progress, self.patience, limit, &over);
                    }
                }
            }
        }
    }

    /// Sleep until `state` is done or it is this thread's turn to drive.
    fn stand_by(
        &self,
        state: &Arc<WorkState>,
        limit: Option<Instant>,
    ) -> Option<MutexGuard<'_, Progress>> {
        lock(&self.standing_by).push(Arc::clone(state));
        // Once more: who stopped before this thread was in the list has not woken it.
        let progress = self.try_progress();
        if progress.is_none() {
            let left = limit.map(|l| l.saturating_duration_since(Instant::now()));
            state.sleep(left.map_or(STAND_BY, |l| l.min(STAND_BY)));
        }
        let mut standing_by = lock(&self.standing_by);
        if let Some(at) = standing_by.iter().position(|s| Arc::ptr_eq(s, state)) {
            standing_by.swap_remove(at);
        }
        progress
    }

    /// This thread has stopped to drive: wake one that can.
    #[inline]
    pub fn hand_over(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            let next = lock(&self.standing_by).iter().find(|s| !s.is_done()).cloned();
            if let Some(next) = next {
                next.nudge();
            }
        }
    }

    /// Let operations advance until `over`, or until some ended and others took the lock.
    fn drive<'a>(
        &'a self,
        mut progress: MutexGuard<'a, Progress>,
        patience: Patience,
        limit: Option<Instant>,
        over: &dyn Fn() -> bool,
    ) {
        let mut looks = 0;
        loop {
            // Before the look at the inbox, so that an abort ends all that was started before it.
            let aborted = progress.is_aborted();
            self.empty_inbox(&mut progress);
            if aborted && !progress.is_empty() {
                progress.abort_now();
            }
            let moved = progress.pass();
            if moved {
                progress.glance();
            }
            if progress.has_ended() {
                let ended = progress.take_ended();
                drop(progress);
                self.settle(ended);
                if over() {
                    return;
                }
                match self.try_progress() {
                    Some(again) => progress = again,
                    None => return,
                }
                looks = 0;
            } else if moved {
                if over() {
                    return;
                }
                looks = 0;
            } else if looks < patience.looks {
                looks += 1;
                std::hint::spin_loop();
            } else {
                if over() {
                    return;
                }
                progress.rest_all(limit);
            }
        }
    }

    fn empty_inbox(&self, progress: &mut Progress) {
        if self.queued.load(Ordering::Acquire) > 0 {
            let mut inbox = lock(&self.inbox);
            self.queued.fetch_sub(inbox.len(), Ordering::AcqRel);
            inbox.drain(..).for_each(|entry| progress.add(entry));
        }
    }

    fn settle(&self, ended: Vec<Ended>) {
        // First, so that nobody drives for what has ended.
        self.unfinished.fetch_sub(ended.len(), Ordering::AcqRel);
        // All are done before the first callback runs: it may wait for one of them.
        let called: Vec<_> = ended.into_iter().map(Ended::finish).collect();
        // Who waits for one of them may have begun to drive, and sleep, in the meantime.
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.waker.wake();
        }
        called.into_iter().for_each(Called::call);
    }

    /// End all operations with [`Error::Aborted`]; no later one is possible.
    pub fn abort(&self, reason: &str) {
        if !self.maker.is_this() {
            return;
        }
        self.abort.request(reason);
        self.waker.wake();
        let ended = {
            // Whoever drives sees the request soon, ends the operations and lets go.
            let mut progress = lock(&self.progress);
            self.empty_inbox(&mut progress);
            progress.abort_now();
            progress.take_ended()
        };
        self.settle(ended);
    }

    /// Drive until everything that was started has ended.
    pub fn drain(&self) {
        if !self.maker.is_this() {
            return;
        }
        let never = Arc::new(WorkState::default());
        while self.unfinished.load(Ordering::Acquire) > 0 {
            self.drive_until(&never, Instant::now().checked_add(DRAIN));
        }
    }

    /// End what is under way, stop the worker, tell the peers. In a forked process nothing of it:
    /// all is left as it is, for as long as that process lives.
    pub fn close(self: &Arc<Self>) {
        if !self.maker.is_this() {
            std::mem::forget(Arc::clone(self));
            return;
        }
        self.worker.stop();
        // Handles may be waited for by other threads, which drive: they are to let go.
        self.abort.request("the communicator was destroyed with operations under way");
        self.waker.wake();
        self.worker.join();
        let ended = {
            let mut progress = lock(&self.progress);
            self.empty_inbox(&mut progress);
            progress.close();
            progress.take_ended()
        };
        self.settle(ended);
    }

    /// The error of a wait whose own limit was over.
    pub fn wait_is_over(&self, lane: usize, identity: &Identity, waited: Duration) -> Error {
        // Who drives knows; it is asked only where that takes no time.
        let mut waiting_for = self.try_progress().map(|p| p.waited_for(lane)).unwrap_or_default();
        // Another thread drives it, or it has not gone to sleep yet.
        if let (true, Some(With::Peer(peer))) = (waiting_for.0.is_empty(), identity.with) {
            waiting_for.0.push(peer);
        }
        Error::Timeout {
            operation: Box::new(OperationName {
                communicator: self.name.clone(),
                rank: self.rank,
                ranks: self.ranks,
                name: identity.name,
                sequence: identity.sequence,
                bytes: identity.bytes,
                with: identity.with,
            }),
            engine: self.engine,
            waited,
            waiting_for,
            running: true,
        }
    }
}

/// Whether operations may run without a queue: none waits for its turn behind another, and none
/// takes what another one is there for.
fn need_no_queue(members: &[Member]) -> bool {
    if let [only] = members {
        return !matches!(only.task, Task::Any(_));
    }
    members.len() <= FEW
        && members.iter().enumerate().all(|(i, member)| {
            matches!(member.task, Task::Pair(_))
                && members[..i].iter().all(|before| before.lane != member.lane)
        })
}

/// One thread more that waits, while this lives.
struct Waiting<'a>(&'a Inner);

impl<'a> Waiting<'a> {
    fn new(inner: &'a Inner) -> Self {
        inner.waiting.fetch_add(1, Ordering::SeqCst);
        Self(inner)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
        self.0.hand_over();
        self.0.kick_worker();
    }
}
