// SPDX-License-Identifier: GPL-2.0

//! Eventfds that are told of completions, and `DMA_ENGINE_ATTACH_EVENTFD`.

use crate::{
    abi::{AttachEventfd, command::eventfd_flags},
    argument::{Outcome, check_unused},
    context::Context,
    helpers::{
        EventfdCtx, dma_engine_eventfd_get, dma_engine_eventfd_put, dma_engine_eventfd_signal,
    },
};
use core::ptr::NonNull;
use kernel::{error::from_err_ptr, prelude::*};

/// A reference to an eventfd.
///
/// # Invariants
///
/// `inner` holds a reference.
pub(crate) struct Eventfd {
    inner: NonNull<EventfdCtx>,
    /// Signal only while the caller says that it waits.
    pub(crate) on_demand: bool,
}

// SAFETY: An eventfd may be signalled and put by any thread.
unsafe impl Send for Eventfd {}

impl Eventfd {
    /// The eventfd behind a descriptor of the current process.
    fn get(fd: i32, on_demand: bool) -> Result<Self> {
        let inner = from_err_ptr(dma_engine_eventfd_get(fd))?;
        // INVARIANT: The reference was just taken.
        Ok(Self { inner: NonNull::new(inner).ok_or(EBADF)?, on_demand })
    }

    /// Signal it. Does not sleep.
    pub(crate) fn signal(&self) {
        // SAFETY: Referenced by the type invariant.
        unsafe { dma_engine_eventfd_signal(self.inner.as_ptr()) };
    }
}

impl Drop for Eventfd {
    fn drop(&mut self) {
        // SAFETY: Referenced by the type invariant, and not used again.
        unsafe { dma_engine_eventfd_put(self.inner.as_ptr()) };
    }
}

pub(crate) fn attach(context: &Context, argument: &mut AttachEventfd) -> Outcome {
    check_unused(argument.flags & !eventfd_flags::ON_DEMAND, argument.reserved)?;
    if argument.fd < -1 {
        return Err(EINVAL);
    }
    let ring = context.ring()?;
    let eventfd = match argument.fd {
        -1 => None,
        fd => Some(Eventfd::get(fd, argument.flags & eventfd_flags::ON_DEMAND != 0)?),
    };
    drop(ring.replace_eventfd(eventfd));
    Ok(None)
}
