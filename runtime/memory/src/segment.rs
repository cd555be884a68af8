//! Sealed anonymous files that processes share by passing their descriptor.

use std::fmt;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use memmap2::{Advice, MmapOptions, MmapRaw};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::libc;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::fstat;
use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};
use nix::unistd::ftruncate;

use crate::{Memory, MemoryError, View};

/// Seals without which a segment is refused: its length is final, and so is that.
const SEALS: [(SealFlag, &str); 3] = [
    (SealFlag::F_SEAL_SHRINK, "F_SEAL_SHRINK"),
    (SealFlag::F_SEAL_GROW, "F_SEAL_GROW"),
    (SealFlag::F_SEAL_SEAL, "F_SEAL_SEAL"),
];

/// Smallest page of the supported machines; populating steps by it.
const SMALLEST_PAGE: usize = 4096;

/// Shared memory without a name: a sealed memfd, mapped for reads and writes.
///
/// Whoever holds the descriptor can map it, nobody else can, and nothing is left behind when the
/// last holder is gone. The seals keep its length, so a peer cannot make a mapping fault.
pub struct Segment {
    fd: OwnedFd,
    map: MmapRaw,
}

impl Segment {
    /// New zeroed segment; `name` is what `/proc/PID/maps` shows and need not be unique.
    ///
    /// # Errors
    ///
    /// [`MemoryError::BadSize`] where `bytes` is zero or past `isize::MAX`;
    /// [`MemoryError::System`] where the system refuses, for example for want of descriptors.
    pub fn create(name: &str, bytes: usize) -> Result<Self, MemoryError> {
        let length = valid_length(bytes)?;
        if cfg!(miri) {
            return Self::alone(bytes);
        }
        let fd = create_memfd(name)?;
        ftruncate(&fd, length).map_err(MemoryError::system("ftruncate"))?;
        let seals = SEALS.into_iter().fold(SealFlag::empty(), |all, (seal, _)| all | seal);
        fcntl(&fd, FcntlArg::F_ADD_SEALS(seals)).map_err(MemoryError::system("F_ADD_SEALS"))?;
        Self::map(fd, bytes)
    }

    /// Map the segment that a peer passed. Seals and length are checked before it is mapped.
    ///
    /// # Errors
    ///
    /// [`MemoryError::NotMemfd`], [`MemoryError::Unsealed`] or [`MemoryError::WrongSize`] where
    /// the file is not what was agreed; otherwise as [`Segment::create`].
    pub fn open(fd: OwnedFd, expected_bytes: usize) -> Result<Self, MemoryError> {
        valid_length(expected_bytes)?;
        let system = fstatfs(&fd).map_err(MemoryError::system("fstatfs"))?;
        if system.filesystem_type() != TMPFS_MAGIC {
            // Huge pages are another file system: they can run out after the mapping was made.
            return Err(MemoryError::NotMemfd);
        }
        let seals = fcntl(&fd, FcntlArg::F_GET_SEALS).map_err(|_| MemoryError::NotMemfd)?;
        let seals = SealFlag::from_bits_retain(seals);
        if let Some((_, missing)) = SEALS.into_iter().find(|(seal, _)| !seals.contains(*seal)) {
            return Err(MemoryError::Unsealed { missing });
        }
        // Only now is the length final.
        let found = fstat(&fd).map_err(MemoryError::system("fstat"))?.st_size;
        let found = u64::try_from(found).unwrap_or(0);
        if found != expected_bytes as u64 {
            return Err(MemoryError::WrongSize { expected: expected_bytes, found });
        }
        Self::map(fd, expected_bytes)
    }

    /// Another mapping of the same memory, with a descriptor of its own.
    ///
    /// # Errors
    ///
    /// [`MemoryError::System`] where the system refuses.
    pub fn try_clone(&self) -> Result<Self, MemoryError> {
        let fd = self.fd.try_clone().map_err(MemoryError::io("dup"))?;
        Self::map(fd, self.bytes())
    }

    /// Descriptor to pass to a peer.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Length in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.map.len()
    }

    /// First byte, aligned to a page.
    #[must_use]
    pub fn base(&self) -> *mut u8 {
        self.map.as_mut_ptr()
    }

    /// All of it.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        // SAFETY:
        // - The mapping has `bytes` readable and writable bytes and lives as long as the borrow.
        // - Its length is sealed, so no access within it can fault for want of a file.
        // - Nobody makes references to these bytes: this crate hands out none but to atomics.
        unsafe { View::from_raw(self.base(), self.bytes()) }
    }

    /// Give every page of `offset .. offset + bytes` a frame now, near the calling thread, and
    /// not at the first touch. Contents stay.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`]; [`MemoryError::System`] where there is no memory.
    pub fn populate(&self, offset: usize, bytes: usize) -> Result<(), MemoryError> {
        let view = self.view();
        view.range(offset, bytes)?;
        if bytes == 0 || cfg!(miri) {
            return Ok(());
        }
        let first = offset - offset % SMALLEST_PAGE;
        let advised = self.map.advise_range(Advice::PopulateWrite, first, offset + bytes - first);
        match advised.map_err(MemoryError::io("madvise")) {
            // Linux before 5.14 does not know the advice. Adding nothing is a write.
            Err(MemoryError::System { errno: Errno::EINVAL, .. }) => {
                for page in (first..offset + bytes).step_by(SMALLEST_PAGE) {
                    view.atomic_u8(page)?.fetch_add(0, Ordering::Relaxed);
                }
                Ok(())
            }
            other => other,
        }
    }

    /// Memory that nobody else can map. Miri, which has no memfd, interprets threads over it.
    fn alone(bytes: usize) -> Result<Self, MemoryError> {
        let fd = File::open("/dev/null").map_err(MemoryError::io("open"))?;
        let map = MmapOptions::new().len(bytes).map_anon().map_err(MemoryError::io("mmap"))?;
        Ok(Self { fd: fd.into(), map: map.into() })
    }

    fn map(fd: OwnedFd, bytes: usize) -> Result<Self, MemoryError> {
        let map = MmapOptions::new().len(bytes).map_raw(&fd).map_err(MemoryError::io("mmap"))?;
        Ok(Self { fd, map })
    }
}

impl Memory for Segment {
    fn view(&self) -> View<'_> {
        self.view()
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment").field("fd", &self.fd).field("bytes", &self.bytes()).finish()
    }
}

fn valid_length(bytes: usize) -> Result<libc::off_t, MemoryError> {
    let limit = isize::MAX as usize;
    match libc::off_t::try_from(bytes) {
        Ok(length) if bytes > 0 && bytes <= limit => Ok(length),
        _ => Err(MemoryError::BadSize { bytes, limit }),
    }
}

fn create_memfd(name: &str) -> Result<OwnedFd, MemoryError> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let never_executable = MFdFlags::from_bits_retain(libc::MFD_NOEXEC_SEAL);
    match memfd_create(name, flags | never_executable) {
        // Linux before 6.3 does not know the flag.
        Err(Errno::EINVAL) => memfd_create(name, flags),
        other => other,
    }
    .map_err(MemoryError::system("memfd_create"))
}
