// SPDX-License-Identifier: GPL-2.0

//! The module's own queue of work: gone only when all of it is done.

use crate::helpers::{dma_engine_alloc_queue, dma_engine_destroy_queue};
use core::{ops::Deref, ptr::NonNull};
use kernel::{bindings, prelude::*, workqueue};

/// A workqueue. Dropping it waits for what is queued: it sleeps.
///
/// # Invariants
///
/// `inner` was allocated and is destroyed on drop only.
pub(crate) struct Queue {
    inner: NonNull<bindings::workqueue_struct>,
}

// SAFETY: Work may be queued by any thread.
unsafe impl Send for Queue {}
// SAFETY: As for `Send`.
unsafe impl Sync for Queue {}

impl Queue {
    /// An empty queue.
    pub(crate) fn new() -> Result<Self> {
        // INVARIANT: It was just allocated.
        Ok(Self { inner: NonNull::new(dma_engine_alloc_queue()).ok_or(ENOMEM)? })
    }
}

impl Deref for Queue {
    type Target = workqueue::Queue;

    fn deref(&self) -> &workqueue::Queue {
        // SAFETY: It is there while this is, by the type invariant.
        unsafe { workqueue::Queue::from_raw(self.inner.as_ptr()) }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: Allocated by the type invariant, and not used again.
        unsafe { dma_engine_destroy_queue(self.inner.as_ptr()) };
    }
}
