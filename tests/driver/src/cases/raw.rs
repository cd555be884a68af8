//! Commands with any argument, and memory that is no segment.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

use nix::errno::Errno;
use nix::libc;

/// Run a command with the argument at an address.
///
/// What the driver does is what is tested, so the argument may be anything; it lies in memory of
/// the caller that nobody else looks at, or where there is none.
pub(super) fn ioctl(device: BorrowedFd<'_>, number: u32, address: usize) -> Result<(), Errno> {
    // SAFETY:
    // - The driver writes at most as many bytes as the caller's struct says that it has.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), number.into(), address) };
    Errno::result(result).map(drop)
}

/// Run a command on a struct; its first field says how long it is.
pub(super) fn command<T>(
    device: BorrowedFd<'_>,
    number: u32,
    argument: &mut T,
) -> Result<(), Errno> {
    ioctl(device, number, std::ptr::from_mut(argument) as usize)
}

/// Map something; what it is must be unmapped by the end of the process.
pub(super) fn map(
    device: BorrowedFd<'_>,
    offset: i64,
    bytes: usize,
    protection: i32,
    flags: i32,
) -> Result<usize, Errno> {
    // SAFETY:
    // - The system chooses the place, so that nothing is mapped over.
    let base = unsafe {
        libc::mmap(std::ptr::null_mut(), bytes, protection, flags, device.as_raw_fd(), offset)
    };
    if base == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(base as usize) }
}

/// Own a descriptor that a command has made.
pub(super) fn own(fd: i32) -> OwnedFd {
    // SAFETY:
    // - The driver has just made it for this process, and nobody else has it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Private anonymous memory.
pub(super) struct Anonymous {
    base: NonNull<u8>,
    bytes: usize,
}

impl Anonymous {
    /// So many bytes, readable, and writable where asked for.
    pub(super) fn new(bytes: usize, writable: bool) -> Self {
        let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
        // SAFETY:
        // - The system chooses the place, so that nothing is mapped over.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(base, libc::MAP_FAILED, "{}", Errno::last());
        Self { base: NonNull::new(base.cast()).unwrap(), bytes }
    }

    /// Address of the first byte.
    pub(super) fn address(&self) -> u64 {
        self.base.as_ptr() as u64
    }

    /// Set a byte.
    pub(super) fn set(&self, offset: usize, value: u8) {
        assert!(offset < self.bytes);
        // SAFETY:
        // - Inside the mapping, which is writable where a test sets bytes.
        unsafe { self.base.as_ptr().add(offset).write_volatile(value) };
    }

    /// Read a byte.
    pub(super) fn get(&self, offset: usize) -> u8 {
        assert!(offset < self.bytes);
        // SAFETY:
        // - Inside the mapping, which is readable.
        unsafe { self.base.as_ptr().add(offset).read_volatile() }
    }

    /// Lay a struct at the beginning.
    pub(super) fn fill_with<T: Copy>(&self, value: &T) {
        assert!(size_of::<T>() <= self.bytes);
        // SAFETY:
        // - Inside the mapping, which is aligned to a page, and writable where a test fills it.
        unsafe { self.base.as_ptr().cast::<T>().write_volatile(*value) };
    }

    /// Make it readable only.
    pub(super) fn forbid_writes(&self) {
        // SAFETY:
        // - All of this mapping, into which nobody has a reference.
        let result =
            unsafe { libc::mprotect(self.base.as_ptr().cast(), self.bytes, libc::PROT_READ) };
        Errno::result(result).unwrap();
    }

    /// Put fresh zeroed pages in the place of the old ones.
    pub(super) fn replace_pages(&self) {
        // SAFETY:
        // - All of this mapping and nothing else; nobody has a reference into it.
        let base = unsafe {
            libc::mmap(
                self.base.as_ptr().cast(),
                self.bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        assert_ne!(base, libc::MAP_FAILED, "{}", Errno::last());
    }
}

impl Drop for Anonymous {
    fn drop(&mut self) {
        // SAFETY:
        // - All of this mapping, which nobody uses any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Run something in a child; true where it returned true.
pub(super) fn in_child(body: impl FnOnce() -> bool) -> bool {
    // SAFETY:
    // - The test program has one thread, so the child may do anything.
    match unsafe { nix::unistd::fork() }.unwrap() {
        nix::unistd::ForkResult::Child => {
            let good =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(false);
            std::process::exit(i32::from(!good));
        }
        nix::unistd::ForkResult::Parent { child } => {
            use nix::sys::wait::{WaitStatus, waitpid};
            waitpid(child, None).unwrap() == WaitStatus::Exited(child, 0)
        }
    }
}

/// Start a child that runs until it is killed, and kill it when it has said that it is ready.
pub(super) fn kill_when_ready(body: impl FnOnce(&dyn Fn())) {
    let (read, write) = nix::unistd::pipe().unwrap();
    // SAFETY:
    // - The test program has one thread, so the child may do anything.
    match unsafe { nix::unistd::fork() }.unwrap() {
        nix::unistd::ForkResult::Child => {
            body(&|| {
                nix::unistd::write(&write, b"r").unwrap();
            });
            std::process::exit(0);
        }
        nix::unistd::ForkResult::Parent { child } => {
            drop(write);
            assert_eq!(nix::unistd::read(&read, &mut [0]).unwrap(), 1, "the child is ready");
            nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGKILL).unwrap();
            nix::sys::wait::waitpid(child, None).unwrap();
        }
    }
}

/// Give up every capability, so that limits hold for root too.
pub(super) fn drop_capabilities() {
    // `struct __user_cap_header_struct` of version 3 and two of `struct __user_cap_data_struct`.
    let header: [u32; 2] = [0x2008_0522, 0];
    let data = [0_u32; 6];
    // SAFETY:
    // - Header and data have the layout that this version of the call reads.
    let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), data.as_ptr()) };
    Errno::result(result).unwrap();
}
