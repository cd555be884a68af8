// SPDX-License-Identifier: GPL-2.0

//! One hardware channel of a dmaengine provider.

use crate::{
    helpers::{
        Callback, DmaChan, dma_engine_channel_align, dma_engine_channel_device,
        dma_engine_channel_name, dma_engine_channel_provider, dma_engine_device_direct,
        dma_engine_device_max_segment, dma_engine_device_node, dma_engine_issue,
        dma_engine_release_channel, dma_engine_request_channel, dma_engine_start,
    },
    parts::pieces::Piece,
};
use core::ptr::NonNull;
use kernel::{
    bindings,
    ffi::c_void,
    prelude::*,
    sync::atomic::{Atomic, Relaxed},
};

/// A channel that is held. Dropping it stops the channel and waits for its callbacks: it sleeps.
///
/// # Invariants
///
/// `inner` is held. `device` is its device.
pub(crate) struct Channel {
    inner: NonNull<DmaChan>,
    device: NonNull<bindings::device>,
    /// Longest copy of one descriptor.
    pub(crate) longest: u32,
    /// What source, destination and length must be a multiple of.
    pub(crate) align: u32,
    /// Copies that were started and are not over.
    pub(crate) busy: Atomic<u32>,
    /// Whether something is queued and not yet begun.
    queued: Atomic<bool>,
}

// SAFETY: A channel may be used by any thread; its provider has its own locks.
unsafe impl Send for Channel {}
// SAFETY: As for `Send`.
unsafe impl Sync for Channel {}

impl Channel {
    /// The next channel that is free; `None` where there is none. Says in the log what it is.
    pub(crate) fn request() -> Option<Self> {
        let inner = NonNull::new(dma_engine_request_channel())?;
        let raw = inner.as_ptr();
        // SAFETY: The channel is held.
        let device = unsafe { dma_engine_channel_device(raw) };
        let Some(device) = NonNull::new(device) else {
            // SAFETY: The channel is held, was not used, and is not used again.
            unsafe { dma_engine_release_channel(raw) };
            return None;
        };
        Some(Self {
            inner,
            device,
            // SAFETY: The device lives as long as the channel is held.
            longest: unsafe { dma_engine_device_max_segment(device.as_ptr()) }.max(1),
            // SAFETY: The channel is held.
            align: unsafe { dma_engine_channel_align(raw) },
            busy: Atomic::new(0),
            queued: Atomic::new(false),
        })
    }

    /// The device that memory is mapped for.
    pub(crate) fn device(&self) -> NonNull<bindings::device> {
        self.device
    }

    /// Whether it can take memory for long without bounce buffers and cache flushes.
    pub(crate) fn is_direct(&self) -> bool {
        // SAFETY: The device lives as long as the channel is held.
        unsafe { dma_engine_device_direct(self.device.as_ptr()) }
    }

    /// NUMA node, or -1.
    pub(crate) fn node(&self) -> i32 {
        // SAFETY: The device lives as long as the channel is held.
        unsafe { dma_engine_device_node(self.device.as_ptr()) }
    }

    /// Name of the channel and of its driver.
    pub(crate) fn names(&self) -> (&CStr, &CStr) {
        let raw = self.inner.as_ptr();
        // SAFETY: The channel is held; its name and that of its driver end with a zero and live as
        // long as it is.
        unsafe {
            (
                CStr::from_char_ptr(dma_engine_channel_name(raw)),
                CStr::from_char_ptr(dma_engine_channel_provider(raw)),
            )
        }
    }

    /// Queue a copy; false where the channel takes none now.
    ///
    /// # Safety
    ///
    /// The addresses of the piece are mapped for the device of this channel, and stay so until the
    /// callback. `parameter` is what `callback` needs, which then comes once.
    pub(crate) unsafe fn start(
        &self,
        piece: &Piece,
        callback: Callback,
        parameter: *mut c_void,
    ) -> bool {
        self.busy.add(1, Relaxed);
        // SAFETY: The channel is held; the rest is promised by the caller.
        let taken = unsafe {
            dma_engine_start(
                self.inner.as_ptr(),
                piece.to,
                piece.from,
                piece.length as usize,
                callback,
                parameter,
            )
        };
        if taken {
            self.queued.store(true, Relaxed);
        } else {
            self.is_over();
        }
        taken
    }

    /// One copy is over.
    pub(crate) fn is_over(&self) {
        let _ = self.busy.fetch_sub(1, Relaxed);
    }

    /// Begin what was queued.
    pub(crate) fn issue(&self) {
        if self.queued.xchg(false, Relaxed) {
            // SAFETY: The channel is held.
            unsafe { dma_engine_issue(self.inner.as_ptr()) };
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: Held by the type invariant, and not used again.
        unsafe { dma_engine_release_channel(self.inner.as_ptr()) };
    }
}
