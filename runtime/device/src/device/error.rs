//! Why the device refused.

use nix::errno::Errno;

use crate::RingError;

/// Why the device refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// It could not be opened.
    #[error("{path}: {errno}; {hint}", hint = open_hint(*errno))]
    Open {
        /// Path of the device node.
        path: String,
        /// What the system said.
        errno: Errno,
    },
    /// Driver and runtime do not understand one another.
    #[error(
        "the driver has ABI {driver} and takes callers from {driver_oldest} on, this program has \
         {program}; update the older of the two"
    )]
    Version {
        /// Version of the driver.
        driver: u32,
        /// Oldest caller that it accepts.
        driver_oldest: u32,
        /// Version of this program.
        program: u32,
    },
    /// A command failed.
    #[error("{command}: {errno}")]
    Command {
        /// Which one.
        command: &'static str,
        /// What the driver said.
        errno: Errno,
    },
    /// What it offers is not a ring.
    #[error(transparent)]
    Ring(#[from] RingError),
}

fn open_hint(errno: Errno) -> &'static str {
    match errno {
        Errno::ENOENT => "load the driver: insmod dma_engine.ko",
        Errno::EACCES | Errno::EPERM => "its group may open it, see Documentation/driver.md",
        Errno::EMFILE | Errno::ENFILE => "raise the limit of open files",
        _ => "see Documentation/driver.md",
    }
}

impl DeviceError {
    /// What the system said, where it said something.
    #[must_use]
    pub const fn errno(&self) -> Option<Errno> {
        match self {
            Self::Open { errno, .. } | Self::Command { errno, .. } => Some(*errno),
            Self::Version { .. } => Some(Errno::EPROTONOSUPPORT),
            Self::Ring(_) => None,
        }
    }
}
