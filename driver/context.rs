// SPDX-License-Identifier: GPL-2.0

//! What belongs to one open file.

use crate::{channels::Channels, errno, pins, regions::Regions, ring::Ring};
use kernel::{
    bindings,
    fs::File,
    mm::{Mm, virt::VmaNew},
    new_mutex,
    prelude::*,
    sync::{
        Arc, Mutex, SetOnce,
        aref::ARef,
        atomic::{Acquire, Atomic, Release},
        poll::PollTable,
    },
};

/// One open file. Locks are taken in the order: submissions of the ring, regions, completions of
/// the ring.
#[pin_data]
pub(crate) struct Context {
    /// The address space that opened the file; the only one that may use it.
    pub(crate) mm: ARef<Mm>,
    /// The channels of the module.
    pub(crate) channels: Arc<Channels>,
    /// Who opened it, for messages.
    pub(crate) pid: i32,
    queried: Atomic<bool>,
    /// The ring, once it is set up.
    pub(crate) ring: SetOnce<Arc<Ring>>,
    /// What is registered.
    #[pin]
    pub(crate) regions: Mutex<Regions>,
}

impl Context {
    /// A file without ring and regions, of the current process.
    pub(crate) fn new(channels: &Arc<Channels>) -> Result<Arc<Self>> {
        let current = kernel::current!();
        let mm = ARef::<Mm>::from(&**current.mm().ok_or(EPERM)?);
        Arc::pin_init(
            pin_init!(Self {
                mm: mm,
                channels: channels.clone(),
                pid: current.tgid(),
                queried: Atomic::new(false),
                ring: SetOnce::new(),
                regions <- new_mutex!(Regions::new()),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Refuse callers of another address space, and commands before a query.
    pub(crate) fn check_caller(&self, is_query: bool) -> Result {
        self.check_mm()?;
        if !is_query && !self.queried.load(Acquire) {
            return Err(EPROTO);
        }
        Ok(())
    }

    fn check_mm(&self) -> Result {
        match kernel::current!().mm() {
            Some(mm) if mm.as_raw() == self.mm.as_raw() => Ok(()),
            _ => Err(EPERM),
        }
    }

    /// Allow the other commands.
    pub(crate) fn set_queried(&self) {
        self.queried.store(true, Release);
    }

    /// The ring of the file.
    pub(crate) fn ring(&self) -> Result<&Ring> {
        self.ring.as_ref().map(|ring| &**ring).ok_or(ENXIO)
    }

    /// Map the ring.
    pub(crate) fn map(&self, area: &VmaNew) -> Result {
        self.check_mm()?;
        self.ring.as_ref().ok_or(EINVAL)?.map(area)
    }

    /// Events that are pending.
    pub(crate) fn poll(&self, file: &File, table: &PollTable<'_>) -> bindings::__poll_t {
        self.ring.as_ref().map_or(0, |ring| ring.poll(file, table))
    }

    /// Bytes that the process has pinned, by any driver.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        pins::pinned_bytes(&self.mm)
    }

    /// The file is closed: wait for what is in flight, then let memory go.
    pub(crate) fn close(&self) {
        if let Some(ring) = self.ring.as_ref() {
            ring.quiesce();
        }
        let regions = core::mem::replace(&mut *self.regions.lock(), Regions::new());
        if regions.count() > 0 {
            pr_info!(
                "pid {}: closed with {} regions, {} KiB pinned; freed\n",
                self.pid,
                regions.count(),
                regions.pinned_bytes() / 1024
            );
        }
        drop(regions);
    }
}

/// The error of a broken ring.
pub(crate) fn ring_failed() -> Error {
    errno(bindings::EBADMSG as i32)
}
