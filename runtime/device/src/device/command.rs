//! One ioctl of the device: the only unsafe code of this crate.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use dma_engine_uapi::{
    AttachEventfd, Enter, Export, Import, Query, RegisterMemory, RingSetup, Submit, Unregister,
    ioctl,
};
use nix::errno::Errno;
use nix::libc;

/// Argument of a command.
///
/// # Safety
///
/// `NUMBER` is the command that takes this struct, all of whose fields are integers and whose
/// first one is its size.
pub(crate) unsafe trait Command: Sized {
    /// Number of the command.
    const NUMBER: u32;
    /// What it is called.
    const NAME: &'static str;

    /// Set the size.
    fn set_size(&mut self, bytes: u32);
}

macro_rules! commands {
    ($($type:ident: $number:ident,)*) => { $(
        // SAFETY:
        // - The header defines this command with this struct, and the ABI's tests compare both.
        unsafe impl Command for $type {
            const NUMBER: u32 = ioctl::$number;
            const NAME: &'static str = concat!("DMA_ENGINE_", stringify!($number));

            fn set_size(&mut self, bytes: u32) {
                self.size = bytes;
            }
        }
    )* };
}

commands! {
    Query: QUERY,
    RingSetup: RING_SETUP,
    Enter: ENTER,
    Submit: SUBMIT,
    RegisterMemory: REGISTER_MEMORY,
    Export: EXPORT,
    Import: IMPORT,
    Unregister: UNREGISTER,
    AttachEventfd: ATTACH_EVENTFD,
}

/// Run a command on an open device. On an error the driver may still have written output fields.
pub(crate) fn run<C: Command>(device: BorrowedFd<'_>, argument: &mut C) -> Result<(), Errno> {
    argument.set_size(size_of::<C>() as u32);
    // SAFETY:
    // - The driver reads and writes at most the size that the argument says, which is its own.
    // - Whatever it writes is a value of integers.
    // - Memory that a command makes it write later is memory that its caller has lent to it.
    let result =
        unsafe { libc::ioctl(device.as_raw_fd(), C::NUMBER.into(), std::ptr::from_mut(argument)) };
    Errno::result(result).map(drop)
}

/// The file of an export.
pub(crate) fn export(device: BorrowedFd<'_>, argument: &mut Export) -> Result<OwnedFd, Errno> {
    run(device, argument)?;
    // SAFETY:
    // - The command has succeeded: it made this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(argument.fd) })
}
