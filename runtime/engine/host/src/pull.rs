//! Reading the memory of a peer's process, past all staging.

use std::io::IoSliceMut;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use stepccl_engine::{EngineError, PartMut};

/// The process behind a socket, as this process sees it; None where it does not: it is in a PID
/// namespace that this one cannot look into.
pub(crate) fn process_of(socket: &impl AsFd) -> Option<Pid> {
    let peer = getsockopt(socket, PeerCredentials).ok()?;
    (peer.pid() > 0).then(|| Pid::from_raw(peer.pid()))
}

/// Read `dst.bytes` bytes at `address` in the process of `rank`.
///
/// # Safety
///
/// `dst` is valid for writes, and nothing else uses it meanwhile.
pub(crate) unsafe fn pull(
    rank: u32,
    pid: Pid,
    address: u64,
    dst: PartMut,
) -> Result<(), EngineError> {
    let failed = |message: String| EngineError::PeerMemory {
        rank,
        address,
        bytes: dst.bytes as u64,
        message,
    };
    let mut done = 0;
    while done < dst.bytes {
        let left = dst.bytes - done;
        let base = usize::try_from(address)
            .ok()
            .and_then(|a| a.checked_add(done))
            .ok_or_else(|| failed("no such address".to_owned()))?;
        // SAFETY:
        // - The caller vouches for `dst`; `done` is below its length. Whatever is read is a byte.
        let to = unsafe { std::slice::from_raw_parts_mut(dst.base.add(done), left) };
        let from = [RemoteIoVec { base, len: left }];
        match process_vm_readv(pid, &mut [IoSliceMut::new(to)], &from) {
            Ok(0) => return Err(failed("nothing was read".to_owned())),
            Ok(read) => done += read,
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(failed(format!("process_vm_readv of {pid}: {errno}"))),
        }
    }
    Ok(())
}
