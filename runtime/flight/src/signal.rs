//! Tells a thread of its own that a signal came, so that records can be written while all else
//! hangs. Nothing of this exists unless it is asked for.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

use nix::libc;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// What the handler writes to; -1: nothing.
static BELL: AtomicI32 = AtomicI32::new(-1);

/// Why a signal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SignalError {
    /// The application has a handler for it, or ignores it.
    #[error("{0} is used by the application; choose another STEPCCL_DUMP_SIGNAL")]
    Taken(&'static str),
    /// The system refused.
    #[error("{what}: {errno}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        errno: nix::errno::Errno,
    },
}

/// The signal of that name: `USR2`, `SIGUSR2`. Only those that are free for applications.
///
/// # Errors
///
/// The rule that it breaks.
pub fn dump_signal(name: Option<&str>) -> Result<Option<Signal>, &'static str> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    match name.to_ascii_uppercase().trim_start_matches("SIG") {
        "USR1" => Ok(Some(Signal::SIGUSR1)),
        "USR2" => Ok(Some(Signal::SIGUSR2)),
        "QUIT" => Ok(Some(Signal::SIGQUIT)),
        "IO" => Ok(Some(Signal::SIGIO)),
        _ => Err("must be one of USR1, USR2, QUIT, IO"),
    }
}

/// Call `dump` on a thread of its own each time `signal` comes. Once a process: later calls change
/// nothing.
///
/// # Errors
///
/// [`SignalError`]: nothing was changed then.
pub fn dump_on(signal: Signal, dump: fn()) -> Result<(), SignalError> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    if BELL.load(Ordering::Acquire) >= 0 {
        return Ok(());
    }
    let system = |what| move |errno| SignalError::System { what, errno };
    if !is_default(signal)? {
        return Err(SignalError::Taken(signal.as_str()));
    }
    let bell = EventFd::from_flags(EfdFlags::EFD_CLOEXEC).map_err(system("eventfd"))?;
    let number = bell.as_raw_fd();
    let spawned = std::thread::Builder::new().name("stepccl-dump".to_owned()).spawn(move || {
        // Lives as long as the process: the handler may write to it at any time.
        let mut bell = File::from(std::os::fd::OwnedFd::from(bell));
        let mut count = [0; 8];
        while bell.read_exact(&mut count).is_ok() {
            dump();
        }
    });
    if let Err(error) = spawned {
        let errno = nix::errno::Errno::from_raw(error.raw_os_error().unwrap_or(libc::EAGAIN));
        return Err(SignalError::System { what: "the thread that dumps", errno });
    }
    BELL.store(number, Ordering::Release);
    let action = SigAction::new(SigHandler::Handler(ring), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY:
    // - `ring` only does what a handler may do: see there.
    unsafe { sigaction(signal, &action) }.map_err(system("sigaction"))?;
    Ok(())
}

/// Whether nobody has said what the signal does.
fn is_default(signal: Signal) -> Result<bool, SignalError> {
    let mut old = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY:
    // - Without a new action, sigaction only writes the present one to `old`, which has its size.
    let answer = unsafe { libc::sigaction(signal as i32, std::ptr::null(), old.as_mut_ptr()) };
    nix::errno::Errno::result(answer)
        .map_err(|errno| SignalError::System { what: "sigaction", errno })?;
    // SAFETY:
    // - The call succeeded, so it has written all of it.
    Ok(unsafe { old.assume_init() }.sa_sigaction == libc::SIG_DFL)
}

/// The handler: one write to an eventfd, and `errno` as it was.
extern "C" fn ring(_signal: libc::c_int) {
    let bell: RawFd = BELL.load(Ordering::Acquire);
    let one = 1_u64.to_ne_bytes();
    // SAFETY:
    // - The address of `errno` of this thread is always valid; handlers must leave it alone.
    // - write may be called in a handler; the buffer has 8 bytes. A full or closed eventfd is an
    //   error that means nothing here.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::write(bell, one.as_ptr().cast(), one.len());
        *errno = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_free_signals_are_taken() {
        assert_eq!(dump_signal(Some("usr2")), Ok(Some(Signal::SIGUSR2)));
        assert_eq!(dump_signal(Some("SIGQUIT")), Ok(Some(Signal::SIGQUIT)));
        assert_eq!(dump_signal(None), Ok(None));
        assert!(dump_signal(Some("KILL")).is_err());
        assert!(dump_signal(Some("TERM")).is_err());
    }
}
