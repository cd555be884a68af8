//! The device: open it, ask it, register memory, make a ring.

#[expect(unsafe_code, reason = "system calls take pointers")]
mod command;
mod error;
mod held;
mod import;
mod region;
mod ring;

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

use dma_engine_uapi::version::{ABI_OLDEST, ABI_VERSION, DEVICE};
use dma_engine_uapi::{AttachEventfd, Descriptor, Query, Submit};
use nix::errno::Errno;

pub use error::DeviceError;
pub use import::Imported;
pub use region::Region;
pub use ring::DeviceEnd;

use self::command::Command;

/// An open file of the device, and what its driver said about itself.
#[derive(Debug)]
pub struct Device {
    file: File,
    facts: Query,
}

impl Device {
    /// Open `/dev/dma_device`.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Open`], [`DeviceError::Version`] or [`DeviceError::Command`].
    pub fn open() -> Result<Arc<Self>, DeviceError> {
        Self::open_at(Path::new(DEVICE))
    }

    /// Open a device node elsewhere.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn open_at(path: &Path) -> Result<Arc<Self>, DeviceError> {
        let opened = File::options().read(true).write(true).open(path);
        let file = opened.map_err(|error| DeviceError::Open {
            path: path.display().to_string(),
            errno: Errno::from_raw(error.raw_os_error().unwrap_or(0)),
        })?;
        let mut device = Self { file, facts: Query::default() };
        device.facts = device.query()?;
        Ok(Arc::new(device))
    }

    /// Ask again; what is pinned changes.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Version`] or [`DeviceError::Command`].
    pub fn query(&self) -> Result<Query, DeviceError> {
        let versions =
            Query { abi_version: ABI_VERSION, abi_oldest: ABI_OLDEST, ..Query::default() };
        let mut query = versions;
        match command::run(self.fd(), &mut query) {
            Ok(()) => Ok(query),
            Err(Errno::EPROTONOSUPPORT) => Err(DeviceError::Version {
                driver: query.driver_version,
                driver_oldest: query.driver_oldest,
                program: ABI_VERSION,
            }),
            Err(errno) => Err(DeviceError::Command { command: Query::NAME, errno }),
        }
    }

    /// What the driver said when the device was opened.
    #[must_use]
    pub const fn facts(&self) -> &Query {
        &self.facts
    }

    /// Run one operation without a ring; returns the bytes moved and
    /// `dma_engine_uapi::completion::flags`.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Command`] with the errno of the operation.
    pub fn submit(&self, desc: Descriptor) -> Result<(u32, u32), DeviceError> {
        let mut submit = Submit { desc, ..Submit::default() };
        self.run(&mut submit)?;
        Ok((submit.result, submit.completion_flags))
    }

    /// Signal an eventfd at completions of the ring; `on_demand`: only while a client waits.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Command`].
    pub fn attach_eventfd(
        &self,
        eventfd: BorrowedFd<'_>,
        on_demand: bool,
    ) -> Result<(), DeviceError> {
        use std::os::fd::AsRawFd;
        let fd = eventfd.as_raw_fd();
        self.run(&mut AttachEventfd { fd, flags: on_demand.into(), ..AttachEventfd::default() })
    }

    /// Signal no eventfd any more.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Command`].
    pub fn detach_eventfd(&self) -> Result<(), DeviceError> {
        self.run(&mut AttachEventfd { fd: -1, ..AttachEventfd::default() })
    }

    fn run<C: Command>(&self, argument: &mut C) -> Result<(), DeviceError> {
        command::run(self.fd(), argument)
            .map_err(|errno| DeviceError::Command { command: C::NAME, errno })
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd()
    }
}
