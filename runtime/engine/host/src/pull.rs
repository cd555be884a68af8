//! Reading and writing the memory of a peer's process, past all staging.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;
use stepccl_engine::{EngineError, Part, PartMut};

/// The process behind a socket, as this process sees it; None where it does not: it is in a PID
/// namespace that this one cannot look into.
pub(crate) fn process_of(socket: &impl AsFd) -> Option<Pid> {
    let peer = getsockopt(socket, PeerCredentials).ok()?;
    (peer.pid() > 0).then(|| Pid::from_raw(peer.pid()))
}

/// A range in the process of a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remote {
    pub(crate) rank: u32,
    pub(crate) pid: Pid,
    pub(crate) address: u64,
}

impl Remote {
    pub(crate) fn failed(&self, bytes: usize, message: String) -> EngineError {
        let Self { rank, address, .. } = *self;
        EngineError::PeerMemory { rank, address, bytes: bytes as u64, message }
    }

    /// What is behind the first `done` of `bytes` bytes.
    fn rest(&self, done: usize, bytes: usize) -> Result<[RemoteIoVec; 1], EngineError> {
        usize::try_from(self.address)
            .ok()
            .and_then(|address| address.checked_add(done))
            .map(|base| [RemoteIoVec { base, len: bytes - done }])
            .ok_or_else(|| self.failed(bytes, "no such address".to_owned()))
    }

    /// Bytes that a call moved, none where it is to be made again.
    fn moved(
        &self,
        call: &str,
        bytes: usize,
        answer: Result<usize, Errno>,
    ) -> Result<usize, EngineError> {
        match answer {
            Ok(0) => Err(self.failed(bytes, format!("{call} moved nothing"))),
            Ok(moved) => Ok(moved),
            Err(Errno::EINTR) => Ok(0),
            Err(errno) => Err(self.failed(bytes, format!("{call} of {}: {errno}", self.pid))),
        }
    }

    /// Read `dst.bytes` bytes.
    ///
    /// # Safety
    ///
    /// `dst` is valid for writes, and nothing else uses it meanwhile.
    pub(crate) unsafe fn read(&self, dst: PartMut) -> Result<(), EngineError> {
        let mut done = 0;
        while done < dst.bytes {
            let from = self.rest(done, dst.bytes)?;
            // SAFETY:
            // - The caller vouches for `dst`; `done` is below its length. Whatever is read is a byte.
            let to =
                unsafe { std::slice::from_raw_parts_mut(dst.base.add(done), dst.bytes - done) };
            let answer = process_vm_readv(self.pid, &mut [IoSliceMut::new(to)], &from);
            done += self.moved("process_vm_readv", dst.bytes, answer)?;
        }
        Ok(())
    }

    /// Write `src`.
    ///
    /// # Safety
    ///
    /// `src` is valid for reads, and nobody writes it meanwhile.
    pub(crate) unsafe fn write(&self, src: Part) -> Result<(), EngineError> {
        let mut done = 0;
        while done < src.bytes {
            let to = self.rest(done, src.bytes)?;
            // SAFETY:
            // - The caller vouches for `src`; `done` is below its length.
            let from = unsafe { std::slice::from_raw_parts(src.base.add(done), src.bytes - done) };
            let answer = process_vm_writev(self.pid, &[IoSlice::new(from)], &to);
            done += self.moved("process_vm_writev", src.bytes, answer)?;
        }
        Ok(())
    }
}
