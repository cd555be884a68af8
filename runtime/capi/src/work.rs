//! Handles of what was started.

use std::ffi::c_int;
use std::time::Duration;

use stepccl::Outcome;

use crate::code::ResultCode;
use crate::comm::{null, write};
use crate::guard::{Failure, guard};

/// An operation that was started; opaque to C.
#[derive(Debug)]
pub struct Work(stepccl::Work);

/// An operation that was started. It goes on when the handle is freed.
pub type WorkHandle = *mut Work;

pub(crate) fn handle_of(work: stepccl::Work) -> WorkHandle {
    Box::into_raw(Box::new(Work(work)))
}

/// # Safety
///
/// `work` must be null or live.
unsafe fn work_of<'a>(work: WorkHandle) -> Result<&'a stepccl::Work, Failure> {
    // SAFETY:
    // - The caller promises that it is null or live; only shared references are ever made of it.
    unsafe { work.as_ref() }.map(|work| &work.0).ok_or_else(|| null("work"))
}

/// Wait until the operation has ended, for at most `timeout_seconds`, above 0; `INFINITY` leaves it
/// to the operation's own timeout. Returns how the operation ended, or `STEPCCL_TIMEOUT`: then
/// `stepccl_work_test` tells whether it goes on. The waiting thread does the work meanwhile.
///
/// Thread safety: any thread; several may wait for the same.
///
/// # Safety
///
/// `work` is null or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_work_wait(work: WorkHandle, timeout_seconds: f64) -> ResultCode {
    guard(|| {
        // SAFETY:
        // - The caller promises that it is null or live.
        let work = unsafe { work_of(work) }?;
        Ok(work.wait(limit(timeout_seconds)?)?)
    })
}

/// No limit where the time is infinite.
fn limit(seconds: f64) -> Result<Option<Duration>, Failure> {
    if seconds.is_nan() || seconds <= 0.0 {
        let rule = "must be above 0 seconds; stepccl_work_test never waits";
        return Err(Failure::argument(format!("timeout_seconds = {seconds}: {rule}")));
    }
    // What does not fit is longer than any operation may take.
    Ok(Duration::try_from_secs_f64(seconds).ok())
}

/// Whether the operation has ended, well or not: `*done` is 1 or 0. Returns how it ended where it
/// has. Never waits.
///
/// Thread safety: any thread.
///
/// # Safety
///
/// `work` is null or live; `done` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_work_test(work: WorkHandle, done: *mut c_int) -> ResultCode {
    guard(|| {
        // SAFETY:
        // - The caller promises both.
        let outcome: Option<Outcome> = unsafe {
            let outcome = work_of(work)?.outcome();
            write("done", done, c_int::from(outcome.is_some()))?;
            outcome
        };
        Ok(outcome.unwrap_or(Ok(()))?)
    })
}

/// Free the handle. The operation goes on, and its buffers are in use until it has ended.
///
/// Thread safety: no other thread may use `work` during the call; nobody may after it.
///
/// # Safety
///
/// `work` is null or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_work_free(work: WorkHandle) -> ResultCode {
    guard(|| {
        if work.is_null() {
            return Err(null("work"));
        }
        // SAFETY:
        // - It came from `handle_of`, and the caller gives it away.
        drop(unsafe { Box::from_raw(work) });
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_mean_nothing_are_refused() {
        for seconds in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
            assert!(limit(seconds).is_err(), "{seconds}");
        }
        assert_eq!(limit(0.5).unwrap(), Some(Duration::from_millis(500)));
        assert_eq!(limit(f64::INFINITY).unwrap(), None);
    }
}
