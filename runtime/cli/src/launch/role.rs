//! What a process is told by the one that started it.

use std::path::PathBuf;

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::getppid;

use super::{LaunchError, PARENT, RANK, STORE};

/// The part of a process in a command that starts ranks.
#[derive(Debug)]
pub(crate) struct Role {
    /// Its rank.
    pub rank: u32,
    /// Directory where ranks meet.
    pub store: PathBuf,
}

impl Role {
    /// The role of this process; `None` for the one that a person started. From here on a rank
    /// does not outlive the process that started it.
    ///
    /// # Errors
    ///
    /// [`LaunchError::Role`] where the variables are not those that this command sets, and
    /// [`LaunchError::Orphan`].
    pub fn take() -> Result<Option<Self>, LaunchError> {
        let Some(rank) = std::env::var_os(RANK) else { return Ok(None) };
        let number = |text: &std::ffi::OsStr| text.to_str()?.parse::<u32>().ok();
        let rank = number(&rank).ok_or(LaunchError::Role { missing: RANK })?;
        let store = std::env::var_os(STORE).ok_or(LaunchError::Role { missing: STORE })?;
        let parent = std::env::var_os(PARENT).and_then(|text| number(&text));
        let parent = parent.ok_or(LaunchError::Role { missing: PARENT })?;
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        // It may have ended before the line above.
        if getppid().as_raw() as u32 != parent {
            return Err(LaunchError::Orphan { rank });
        }
        Ok(Some(Self { rank, store: store.into() }))
    }
}
