// SPDX-License-Identifier: GPL-2.0

//! Who uses a thing, and waiting until nobody does.

use kernel::{
    new_condvar, new_spinlock_irq,
    prelude::*,
    sync::{CondVar, SpinLockIrq},
};

/// A count of users; may be lowered in a callback of a channel.
#[pin_data]
pub(crate) struct Users {
    #[pin]
    count: SpinLockIrq<u32>,
    #[pin]
    none: CondVar,
}

impl Users {
    /// None.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            count <- new_spinlock_irq!(0),
            none <- new_condvar!(),
        })
    }

    /// One more.
    pub(crate) fn add(&self) {
        *self.count.lock() += 1;
    }

    /// One fewer. Under the lock, which whoever waits must take before the count goes away.
    pub(crate) fn remove(&self) {
        let mut count = self.count.lock();
        *count -= 1;
        if *count == 0 {
            self.none.notify_all();
        }
    }

    /// Wait until there is none. Sleeps.
    pub(crate) fn wait(&self) {
        let mut count = self.count.lock();
        while *count > 0 {
            self.none.wait(&mut count);
        }
    }
}
