//! Counters that one thread advances and any thread reads.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Counters;

/// One counter with one writer at a time.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Advance by `n`. Only the thread that drives the engine calls it, so a load and a store do,
    /// which cost what a plain addition costs.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// What it is now.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The live counters of an engine; [`Counters`] documents them.
#[derive(Debug, Default)]
#[expect(
    missing_docs,
    reason = "each counter is documented at the field of the same name in Counters"
)]
pub struct Meter {
    pub copied_bytes: Count,
    pub reduced_bytes: Count,
    pub inline_operations: Count,
    pub channel_operations: Count,
    pub full: Count,
    pub pulls: Count,
    pub pulled_bytes: Count,
    pub pushes: Count,
    pub pushed_bytes: Count,
    pub posts: Count,
    pub posted_bytes: Count,
    pub signals: Count,
    pub sleeps: Count,
    pub wakes: Count,
}

impl Meter {
    /// What the counters are now. Each is right; they may be of slightly different moments.
    #[must_use]
    pub fn read(&self) -> Counters {
        Counters {
            copied_bytes: self.copied_bytes.get(),
            reduced_bytes: self.reduced_bytes.get(),
            inline_operations: self.inline_operations.get(),
            channel_operations: self.channel_operations.get(),
            full: self.full.get(),
            pulls: self.pulls.get(),
            pulled_bytes: self.pulled_bytes.get(),
            pushes: self.pushes.get(),
            pushed_bytes: self.pushed_bytes.get(),
            posts: self.posts.get(),
            posted_bytes: self.posted_bytes.get(),
            signals: self.signals.get(),
            sleeps: self.sleeps.get(),
            wakes: self.wakes.get(),
        }
    }
}
