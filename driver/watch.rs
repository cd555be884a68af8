// SPDX-License-Identifier: GPL-2.0

//! The thread that gives channels up which do not answer any more.

use crate::{
    channels::Channels,
    helpers::{dma_engine_sleep_or_stop, dma_engine_start_thread, dma_engine_stop_thread},
};
use core::ptr::NonNull;
use kernel::{
    bindings,
    error::from_err_ptr,
    ffi::{c_int, c_void},
    prelude::*,
    sync::Arc,
};

/// How often it looks, in milliseconds.
const PERIOD_MS: u32 = 250;

/// The running thread. Dropping it ends the thread: it sleeps.
///
/// # Invariants
///
/// `task` is a thread that runs [`run`] with `channels`.
pub(crate) struct Watch {
    task: NonNull<bindings::task_struct>,
    _channels: Arc<Channels>,
}

// SAFETY: A thread may be stopped by any other one.
unsafe impl Send for Watch {}
// SAFETY: There is no method that takes `&self`.
unsafe impl Sync for Watch {}

impl Watch {
    /// Start it, where there is something to watch.
    pub(crate) fn start(channels: &Arc<Channels>) -> Result<Option<Self>> {
        if channels.count() == 0 {
            return Ok(None);
        }
        let parameter = core::ptr::from_ref(&**channels).cast_mut().cast();
        // SAFETY: The thread ends before the reference to the channels does.
        let task = from_err_ptr(unsafe { dma_engine_start_thread(run, parameter) })?;
        // INVARIANT: It was just started.
        Ok(Some(Self { task: NonNull::new(task).ok_or(ENOMEM)?, _channels: channels.clone() }))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // SAFETY: It runs by the type invariant, and is not used again.
        unsafe { dma_engine_stop_thread(self.task.as_ptr()) };
    }
}

/// # Safety
///
/// `parameter` is the channels, which stay until this has returned.
unsafe extern "C" fn run(parameter: *mut c_void) -> c_int {
    // SAFETY: Promised by the caller.
    let channels = unsafe { &*parameter.cast::<Channels>() };
    while !dma_engine_sleep_or_stop(PERIOD_MS) {
        channels.look(PERIOD_MS);
    }
    0
}
