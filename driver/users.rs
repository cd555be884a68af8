// SPDX-License-Identifier: GPL-2.0

//! Who uses a thing, and waiting until nobody does.

use kernel::{
    new_condvar, new_spinlock_irq,
    prelude::*,
    sync::{
        CondVar, SpinLockIrq,
        atomic::{Acquire, Atomic, Full, Relaxed, Release},
    },
};

/// A count of users; may be lowered in a callback of a channel.
#[pin_data]
pub(crate) struct Users {
    count: Atomic<u32>,
    /// Held by whoever makes the count zero, and by whoever finds it so.
    #[pin]
    last: SpinLockIrq<()>,
    #[pin]
    none: CondVar,
}

impl Users {
    /// None.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            count: Atomic::new(0),
            last <- new_spinlock_irq!(()),
            none <- new_condvar!(),
        })
    }

    /// One more.
    pub(crate) fn add(&self) {
        self.count.add(1, Relaxed);
    }

    /// One fewer. The last one holds the lock, which whoever waits must take before the count goes
    /// away; others do not touch it after they have lowered it.
    pub(crate) fn remove(&self) {
        let mut count = self.count.load(Relaxed);
        while count > 1 {
            // Release: what was done with the thing comes before the end of the wait.
            match self.count.cmpxchg(count, count - 1, Release) {
                Ok(_) => return,
                Err(found) => count = found,
            }
        }
        let _last = self.last.lock();
        if self.count.fetch_sub(1, Full) == 1 {
            self.none.notify_all();
        }
    }

    /// Wait until there is none. Sleeps.
    pub(crate) fn wait(&self) {
        let mut last = self.last.lock();
        // Acquire: pairs with every release above.
        while self.count.load(Acquire) > 0 {
            self.none.wait(&mut last);
        }
    }
}
