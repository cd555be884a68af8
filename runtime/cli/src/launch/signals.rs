//! Signals as events that one loop waits for, together with the end of children.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// What a wait ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A child ended, maybe several.
    Child,
    /// Somebody wants this command to end.
    End(Signal),
    /// Nothing happened in time.
    Nothing,
}

/// SIGCHLD and the signals that end a command, blocked and queued.
#[derive(Debug)]
pub(crate) struct Signals {
    queue: SignalFd,
}

impl Signals {
    /// Take the signals from here on. The standard library gives children an empty mask.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn take() -> Result<Self, Errno> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = ignored(&status);
        let mut set = SigSet::empty();
        set.add(Signal::SIGCHLD);
        // A blocked signal is queued even where it is ignored, as under nohup: leave those alone.
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            if ignored & (1 << (signal as u32 - 1)) == 0 {
                set.add(signal);
            }
        }
        set.thread_block()?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self { queue: SignalFd::with_flags(&set, flags)? })
    }

    /// The next event, at the latest at `deadline`. Ends before children: Ctrl-C reaches both.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn wait(&self, deadline: Option<Instant>) -> Result<Event, Errno> {
        let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
        let mut fds = [PollFd::new(self.queue.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, timeout(left)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
        let mut event = Event::Nothing;
        while let Some(info) = self.queue.read_signal()? {
            match Signal::try_from(info.ssi_signo as i32) {
                Ok(Signal::SIGCHLD) if event == Event::Nothing => event = Event::Child,
                Ok(Signal::SIGCHLD) | Err(_) => {}
                Ok(signal) => event = Event::End(signal),
            }
        }
        Ok(event)
    }
}

fn timeout(left: Option<Duration>) -> PollTimeout {
    // Rounded up, so that a wait never ends just before its deadline.
    left.map_or(PollTimeout::NONE, |left| {
        PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
    })
}

/// Signals that the process ignores, one bit each from the lowest, from `/proc/self/status`.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_hexadecimal() {
        assert_eq!(ignored("SigBlk:\t00\nSigIgn:\t0000000000001001\n"), 0x1001);
        assert_eq!(ignored("SigIgn: none"), 0);
        assert_eq!(ignored(""), 0);
    }
}
