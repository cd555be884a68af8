// SPDX-License-Identifier: GPL-2.0

//! `DMA_ENGINE_ENTER`: take entries, then wait for completions.

use crate::{
    abi::{Enter, command::enter_flags},
    argument::{Outcome, check_unused},
    context::Context,
    errno,
    ring::Waited,
};
use kernel::{bindings, prelude::*};

pub(crate) fn run(context: &Context, enter: &mut Enter) -> Outcome {
    check_unused(enter.flags & !(enter_flags::WAKE | enter_flags::ABSOLUTE), 0)?;
    let timeout = i64::try_from(enter.timeout_ns).map_err(|_| EINVAL)?;
    if enter.min_complete == 0 && timeout != 0 {
        return Err(EINVAL);
    }
    let ring = context.ring()?;
    if enter.min_complete > ring.completion_slots() {
        return Err(EINVAL);
    }
    let now = now();
    let deadline = if enter.flags & enter_flags::ABSOLUTE != 0 {
        timeout
    } else {
        now.saturating_add(timeout)
    };
    enter.submitted = ring.submit(context, enter.to_submit)?;
    let (completed, waited) =
        ring.wait(enter.min_complete, || deadline.saturating_sub(self::now()))?;
    enter.completed = completed;
    match waited {
        Waited::Enough => Ok(None),
        Waited::TimeOver => Ok(Some(errno(bindings::ETIME as i32))),
        Waited::Signal if enter.submitted > 0 => Ok(Some(EINTR)),
        Waited::Signal => Err(ERESTARTSYS),
    }
}

/// Nanoseconds of CLOCK_MONOTONIC.
fn now() -> i64 {
    // SAFETY: Reading this clock is always allowed.
    unsafe { bindings::ktime_get() }
}
