// SPDX-License-Identifier: GPL-2.0

//! The ring of a file: entries in, completions out.
//!
//! `Documentation/memory-model.md` has the order of all accesses; this is the service.

use crate::{
    abi::{
        completion::CompletionEntry,
        descriptor::opcode,
        ring::{cq_flags, sq_flags},
        status::ECANCELED,
        submission::{SubmissionEntry, flags},
    },
    context::{Context, ring_failed},
    copy::{self, Started},
    eventfd::Eventfd,
    flight::Report,
    helpers::{dma_engine_cond_resched, dma_engine_ratelimit},
    limits,
    parts::{
        chain::Chain,
        completions::Completions,
        few::Few,
        setup::Plan,
        submissions::{Broken, Submissions},
    },
    shared::Shared,
};
use core::ptr::NonNull;
use kernel::{
    bindings,
    fs::File,
    mm::virt::VmaNew,
    new_mutex, new_poll_condvar, new_spinlock_irq,
    prelude::*,
    sync::{
        Arc, CondVarTimeoutResult, Mutex, SpinLockIrq,
        atomic::{Acquire, Atomic, Relaxed, Release},
        barrier::smp_mb,
        poll::{PollCondVar, PollTable},
    },
    time::msecs_to_jiffies,
};

/// Entries that are taken together, so that locks are taken and indices stored once.
const BATCH: usize = 16;

/// Bytes that the CPU moves before it posts what is complete.
const BATCH_BYTES: u64 = 65536;

/// Why a wait for completions is over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// There are as many as were asked for.
    Enough,
    /// The time is over.
    TimeOver,
    /// A signal came.
    Signal,
}

/// Numbers of a ring, for people.
pub(crate) struct Facts {
    pub(crate) in_flight: u32,
    pub(crate) unread: u32,
    pub(crate) stalls: u32,
}

/// The side that takes entries.
struct Takes {
    submissions: Submissions,
    chain: Chain,
    /// Entries that were taken together.
    batch: Few<SubmissionEntry, BATCH>,
    /// Completions of the batch that are not posted.
    over: Few<CompletionEntry, BATCH>,
}

/// The side that posts completions; may be taken in a callback of a channel.
struct Posts {
    completions: Completions,
    /// What `sq_flags` is, so that it is never read back.
    flags: u32,
    stalls: u32,
    eventfd: Option<Eventfd>,
}

/// The ring of a file.
#[pin_data]
pub(crate) struct Ring {
    shared: Shared,
    plan: Plan,
    /// What `sq_head` is, for whoever does not take entries.
    head: Atomic<u32>,
    #[pin]
    takes: Mutex<Takes>,
    #[pin]
    posts: SpinLockIrq<Posts>,
    #[pin]
    changed: PollCondVar,
}

impl Ring {
    /// An empty ring.
    pub(crate) fn new(plan: &Plan) -> Result<Arc<Self>> {
        let shared = Shared::new(plan.bytes as usize)?;
        // Nobody polls: whoever publishes must enter.
        let flags = sq_flags::NEED_WAKEUP;
        shared.word(plan.offsets.sq_flags).store(flags, Release);
        Arc::pin_init(
            pin_init!(Self {
                shared: shared,
                plan: *plan,
                head: Atomic::new(0),
                takes <- new_mutex!(Takes {
                    submissions: Submissions::new(plan.sq_entries),
                    chain: Chain::new(),
                    batch: Few::new(),
                    over: Few::new(),
                }),
                posts <- new_spinlock_irq!(Posts {
                    completions: Completions::new(plan.cq_entries),
                    flags,
                    stalls: 0,
                    eventfd: None,
                }),
                changed <- new_poll_condvar!("dma_engine ring"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Slots of the completion queue.
    pub(crate) fn completion_slots(&self) -> u32 {
        self.plan.cq_entries
    }

    /// Map it into the caller.
    pub(crate) fn map(&self, area: &VmaNew) -> Result {
        self.shared.map(area)
    }

    /// Take up to `limit` entries and run them; returns how many were taken.
    pub(crate) fn submit(&self, context: &Context, limit: u32) -> Result<u32> {
        let taken = self.submit_some(context, limit);
        context.channels.issue();
        taken
    }

    fn submit_some(&self, context: &Context, limit: u32) -> Result<u32> {
        let mut takes = self.takes.lock();
        let mut taken = 0;
        while taken < limit && self.entry_waits(&mut takes)? {
            let wanted = takes.submissions.waiting().min(limit - taken).min(BATCH as u32);
            let count = self.reserve(wanted)?;
            if count == 0 {
                break;
            }
            self.take(&mut takes, count);
            self.run_batch(context, &mut takes);
            taken += count;
            dma_engine_cond_resched();
            if kernel::current!().signal_pending() {
                break;
            }
        }
        Ok(taken)
    }

    /// Start the entries that were taken. Completions of those that are over at once are posted
    /// together, but not after something that takes time.
    fn run_batch(&self, context: &Context, takes: &mut Takes) {
        let Takes { batch, over, chain, .. } = takes;
        let batch = batch.as_slice();
        let mut bytes = 0;
        for (index, entry) in batch.iter().enumerate() {
            let waits = entry.flags & (flags::DRAIN | flags::LINK) != 0
                || entry.desc.opcode == opcode::FENCE;
            if waits || bytes >= BATCH_BYTES {
                self.post(over.as_slice());
                over.clear();
                bytes = 0;
            }
            let not_begun = (batch.len() - index) as u32;
            let succeeded = match self.start(context, entry, chain.cancels(), not_begun) {
                Started::Over(completion) => {
                    over.push(completion);
                    bytes += completion.outcome().map_or(0, u64::from);
                    completion.outcome().is_ok()
                }
                Started::Flying => true,
            };
            chain.end(entry.flags & flags::LINK != 0, succeeded);
        }
        self.post(over.as_slice());
        over.clear();
    }

    /// Start an entry, and end it where order asks for that. So many entries of its batch, itself
    /// among them, are not begun.
    fn start(
        &self,
        context: &Context,
        entry: &SubmissionEntry,
        cancelled: bool,
        not_begun: u32,
    ) -> Started {
        if entry.flags & flags::DRAIN != 0 || entry.desc.opcode == opcode::FENCE {
            context.channels.issue();
            self.wait_for_earlier(not_begun);
        }
        if cancelled {
            Started::Over(CompletionEntry::failed(entry.user_data, ECANCELED))
        } else if entry.flags & flags::LINK != 0 {
            // Whether the next one starts depends on it.
            Started::Over(copy::run(context, entry))
        } else {
            // SAFETY: `quiesce` keeps the ring until everything in flight has posted.
            unsafe { copy::start(context, entry, Report::Ring(NonNull::from(self))) }
        }
    }

    /// Wait until nothing but the entries not begun is left of those that were taken.
    fn wait_for_earlier(&self, not_begun: u32) {
        let mut posts = self.posts.lock();
        while posts.completions.reserved() > not_begun {
            self.changed.wait(&mut posts);
        }
    }

    fn entry_waits(&self, takes: &mut Takes) -> Result<bool> {
        if takes.submissions.waiting() > 0 {
            return Ok(true);
        }
        takes.chain.cut();
        // Acquire: the entries are written before the tail that covers them.
        let found = self.shared.word(self.plan.offsets.sq_tail).load(Acquire);
        match takes.submissions.see_tail(found) {
            Ok(count) => Ok(count > 0),
            Err(broken) => Err(self.fail(&mut self.posts.lock(), "sq_tail", broken)),
        }
    }

    /// Set up to `wanted` completion slots aside; 0 where none is free, or too much is in flight.
    fn reserve(&self, wanted: u32) -> Result<u32> {
        let mut posts = self.posts.lock();
        if posts.flags & sq_flags::FAILED != 0 {
            return Err(ring_failed());
        }
        let allowed = limits::MAX_IN_FLIGHT.saturating_sub(posts.completions.reserved());
        let wanted = wanted.min(allowed);
        if wanted == 0 {
            return Ok(0);
        }
        if posts.completions.room() < wanted {
            self.see_head(&mut posts)?;
        }
        let count = posts.completions.reserve(wanted);
        let full = count == 0;
        if full != (posts.flags & sq_flags::CQ_FULL != 0) {
            if full {
                posts.stalls = posts.stalls.wrapping_add(1);
                self.shared.word(self.plan.offsets.cq_stalls).store(posts.stalls, Relaxed);
            }
            let flags = posts.flags ^ sq_flags::CQ_FULL;
            self.set_flags(&mut posts, flags);
        }
        Ok(count)
    }

    /// Copy `count` entries that wait, and free their slots.
    fn take(&self, takes: &mut Takes, count: u32) {
        takes.batch.clear();
        for _ in 0..count {
            let Some(slot) = takes.submissions.take() else { break };
            let offset = self.plan.offsets.sq_entries as usize
                + slot as usize * size_of::<SubmissionEntry>();
            // The only look at the entry: whoever checks it checks this copy.
            let entry = SubmissionEntry::from_words(self.shared.read(offset));
            takes.batch.push(entry);
        }
        let head = takes.submissions.head();
        self.head.store(head, Relaxed);
        // Release: the entries are copied before their slots are free.
        self.shared.word(self.plan.offsets.sq_head).store(head, Release);
    }

    /// Post completions of entries that were taken. Does not sleep.
    pub(crate) fn post(&self, completions: &[CompletionEntry]) {
        if completions.is_empty() {
            return;
        }
        let mut posts = self.posts.lock();
        for completion in completions {
            let Some(slot) = posts.completions.post() else { break };
            let offset = self.plan.offsets.cq_entries as usize
                + slot as usize * size_of::<CompletionEntry>();
            self.shared.write(offset, completion.to_words());
        }
        // Release: the completions are written before the tail that covers them.
        let tail = posts.completions.tail();
        self.shared.word(self.plan.offsets.cq_tail).store(tail, Release);
        self.notify(&posts);
    }

    /// Under the lock, so that nobody whom it wakes can take the ring away meanwhile.
    fn notify(&self, posts: &Posts) {
        self.changed.notify_all();
        let Some(eventfd) = &posts.eventfd else {
            return;
        };
        if eventfd.on_demand {
            // Pairs with the barrier of the caller that stores the flag and then loads the tail.
            smp_mb(kernel::sync::barrier::Full);
            let flags = self.shared.word(self.plan.offsets.cq_flags).load(Relaxed);
            if flags & cq_flags::WAITING == 0 && posts.flags & sq_flags::FAILED == 0 {
                return;
            }
        }
        eventfd.signal();
    }

    /// Believe the caller's head of the completion queue, where it is possible.
    fn see_head(&self, posts: &mut Posts) -> Result {
        // Acquire: the caller has copied a completion before it moved the head past it.
        let found = self.shared.word(self.plan.offsets.cq_head).load(Acquire);
        match posts.completions.see_head(found) {
            Ok(()) => Ok(()),
            Err(broken) => Err(self.fail(posts, "cq_head", broken)),
        }
    }

    fn fail(&self, posts: &mut Posts, word: &str, broken: Broken) -> Error {
        if posts.flags & sq_flags::FAILED == 0 {
            let flags = posts.flags | sq_flags::FAILED;
            self.set_flags(posts, flags);
            self.notify(posts);
            if dma_engine_ratelimit() {
                pr_warn!(
                    "ring failed: {} is {}, {} to {} are possible\n",
                    word,
                    broken.found,
                    broken.from,
                    broken.to
                );
            }
        }
        ring_failed()
    }

    fn set_flags(&self, posts: &mut Posts, flags: u32) {
        posts.flags = flags;
        // Release: a caller that sees the ring failed sees what was completed before.
        self.shared.word(self.plan.offsets.sq_flags).store(flags, Release);
    }

    /// Wait for `min` completions while `left` says that there are nanoseconds left; returns how
    /// many there are.
    pub(crate) fn wait(&self, min: u32, left: impl Fn() -> i64) -> Result<(u32, Waited)> {
        let mut posts = self.posts.lock();
        loop {
            self.see_head(&mut posts)?;
            let ready = posts.completions.ready();
            if ready >= min {
                return Ok((ready, Waited::Enough));
            }
            if posts.flags & sq_flags::FAILED != 0 {
                return Err(ring_failed());
            }
            let nanos = u64::try_from(left()).unwrap_or(0);
            if nanos == 0 {
                return Ok((ready, Waited::TimeOver));
            }
            let millis = nanos.div_ceil(1_000_000).min(i32::MAX as u64);
            let jiffies = msecs_to_jiffies(millis as u32);
            let woken = self.changed.wait_interruptible_timeout(&mut posts, jiffies);
            if let CondVarTimeoutResult::Signal { .. } = woken {
                return Ok((posts.completions.ready(), Waited::Signal));
            }
        }
    }

    /// Events that are pending.
    pub(crate) fn poll(&self, file: &File, table: &PollTable<'_>) -> bindings::__poll_t {
        table.register_wait(file, &self.changed);
        let mut posts = self.posts.lock();
        // What is wrong with the head shows in the flags.
        let _ = self.see_head(&mut posts);
        let mut events = 0;
        if posts.completions.ready() > 0 {
            events |= bindings::POLLIN | bindings::POLLRDNORM;
        }
        if posts.flags & sq_flags::FAILED != 0 {
            events |= bindings::POLLERR;
        }
        let tail = self.shared.word(self.plan.offsets.sq_tail).load(Relaxed);
        if tail.wrapping_sub(self.head.load(Relaxed)) < self.plan.sq_entries {
            events |= bindings::POLLOUT | bindings::POLLWRNORM;
        }
        events
    }

    /// Attach another eventfd; returns the one before, to be dropped without the lock.
    pub(crate) fn replace_eventfd(&self, eventfd: Option<Eventfd>) -> Option<Eventfd> {
        core::mem::replace(&mut self.posts.lock().eventfd, eventfd)
    }

    /// Wait until nothing is in flight.
    pub(crate) fn quiesce(&self) {
        let mut posts = self.posts.lock();
        while posts.completions.reserved() > 0 {
            self.changed.wait(&mut posts);
        }
    }

    /// Numbers, for people.
    pub(crate) fn facts(&self) -> Facts {
        let mut posts = self.posts.lock();
        // What is wrong with the head shows in the flags.
        let _ = self.see_head(&mut posts);
        Facts {
            in_flight: posts.completions.reserved(),
            unread: posts.completions.ready(),
            stalls: posts.stalls,
        }
    }
}
