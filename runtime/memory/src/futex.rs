//! Sleeping on a word of shared memory, across processes.
//!
//! The calls are the shared kind (not `FUTEX_PRIVATE_FLAG`), so that waiter and waker may be
//! different processes with the word mapped at different addresses.

use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::time::{ClockId, clock_gettime};

use crate::MemoryError;

/// Longest sleep of one call; a longer limit is cut to it.
pub const LONGEST_WAIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// Why [`wait`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Someone called [`wake`]; or, seldom, nobody did. Look at the word.
    Woken,
    /// The word was not `expected` any more, so there was nothing to wait for.
    Changed,
    /// The limit is over.
    TimedOut,
}

/// Sleep while `word` is `expected`, at most `limit`. Signals do not end or prolong the sleep.
///
/// # Errors
///
/// [`MemoryError::System`] where the system refuses; not for a word that changed or a limit that
/// is over.
pub fn wait(word: &AtomicU32, expected: u32, limit: Duration) -> Result<Woken, MemoryError> {
    // An absolute deadline, so that an interrupted wait goes on for the rest and not from new.
    let now =
        clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(MemoryError::system("clock_gettime"))?;
    let end = Duration::from(now) + limit.min(LONGEST_WAIT);
    let deadline = nix::sys::time::TimeSpec::from_duration(end);
    loop {
        // SAFETY:
        // - `word` is a live aligned word of 4 bytes and `deadline` a live timespec; the kernel
        //   only reads both, and only during the call.
        // - This operation ignores the second address, which is null.
        let result = unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT_BITSET,
                expected,
                ptr::from_ref(deadline.as_ref()),
                ptr::null::<u32>(),
                libc::FUTEX_BITSET_MATCH_ANY,
            )
        };
        match Errno::result(result) {
            Ok(_) => return Ok(Woken::Woken),
            Err(Errno::EAGAIN) => return Ok(Woken::Changed),
            Err(Errno::ETIMEDOUT) => return Ok(Woken::TimedOut),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(MemoryError::System { call: "futex wait", errno }),
        }
    }
}

/// Wake at most `waiters` threads that sleep on `word`; returns how many were woken.
///
/// # Errors
///
/// [`MemoryError::System`] where the system refuses.
pub fn wake(word: &AtomicU32, waiters: u32) -> Result<u32, MemoryError> {
    let waiters = i32::try_from(waiters).unwrap_or(i32::MAX);
    // SAFETY:
    // - `word` is a live aligned word of 4 bytes, of which the kernel uses the address only.
    let result =
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, waiters) };
    Errno::result(result)
        .map(|woken| u32::try_from(woken).unwrap_or(0))
        .map_err(MemoryError::system("futex wake"))
}
