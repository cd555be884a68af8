//! Requests of C, checked as far as numbers go, and how they are run.

use std::ffi::c_void;

use stepccl::{Call, Collective, Keep, Memory, Message, ReduceOp, Request};

use crate::code::ResultCode;
use crate::comm::{CommHandle, comm_of, null, write};
use crate::dtype::{DTypeNumber, dtype};
use crate::group;
use crate::guard::{Failure, guard};
use crate::op::{OpNumber, op};
use crate::work::{WorkHandle, handle_of};

/// What a function of the interface was given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    pub input: *const c_void,
    pub output: *mut c_void,
    pub count: usize,
    pub dtype: DTypeNumber,
    /// None where nothing is combined.
    pub op: Option<OpNumber>,
}

impl Given {
    /// Nothing to move.
    pub const NOTHING: Self = Self {
        input: std::ptr::null(),
        output: std::ptr::null_mut(),
        count: 0,
        dtype: crate::dtype::STEPCCL_UINT8,
        op: None,
    };

    pub fn collective(self, collective: Collective) -> Result<Request, Failure> {
        let call = Call {
            collective,
            dtype: dtype(self.dtype)?,
            op: self.op.map_or(Ok(ReduceOp::Sum), op)?,
            premul: 1.0,
            count: self.count,
            input: Memory::Contiguous(self.input.cast_mut().cast()),
            output: Memory::Contiguous(self.output.cast()),
        };
        Ok(call.into())
    }

    pub fn send(self, peer: u32) -> Result<Request, Failure> {
        Ok(Request::Send(self.message(self.input.cast_mut(), peer)?))
    }

    pub fn recv(self, peer: u32) -> Result<Request, Failure> {
        Ok(Request::Recv(self.message(self.output, peer)?))
    }

    fn message(self, memory: *mut c_void, peer: u32) -> Result<Message, Failure> {
        let Self { count, .. } = self;
        let bytes = count.checked_mul(dtype(self.dtype)?.size()).ok_or_else(|| {
            Failure::argument(format!("count = {count}: the message must be at most 2^40 bytes"))
        })?;
        Ok(Message { peer, tag: 0, memory: memory.cast(), bytes })
    }
}

/// Run a request, or put it into the open group of this thread.
///
/// # Safety
///
/// `comm` must be null or live. The memory of the request must be valid, and nothing else may write
/// what is read or touch what is written, until this returns or, in a group, until the group ends.
pub(crate) unsafe fn wait_for(
    comm: CommHandle,
    request: impl FnOnce() -> Result<Request, Failure>,
) -> ResultCode {
    guard(|| {
        // SAFETY:
        // - The caller promises that it is null or live.
        let comm = unsafe { comm_of(comm) }?;
        let Some(request) = group::add(&comm.ranks, request()?) else { return Ok(()) };
        // SAFETY:
        // - The caller promises it until this returns.
        Ok(unsafe { comm.ranks.run(request, None) }?)
    })
}

/// Start a request; `*work` is null where that fails.
///
/// # Safety
///
/// As [`wait_for`], but until the work has ended; `work` must be null or valid for a write.
pub(crate) unsafe fn start(
    comm: CommHandle,
    work: *mut WorkHandle,
    request: impl FnOnce() -> Result<Request, Failure>,
) -> ResultCode {
    guard(|| {
        if work.is_null() {
            return Err(null("work"));
        }
        // SAFETY:
        // - It is not null, and the caller promises that it may be written; `comm` is null or live.
        let comm = unsafe {
            write("work", work, std::ptr::null_mut())?;
            comm_of(comm)?
        };
        if group::is_open() {
            return Err(Failure::usage(
                "a group is open on this thread: call the form without _start, \
                 or end the group first",
            ));
        }
        // SAFETY:
        // - The caller promises it until the work has ended. The library owns none of the memory.
        let started = unsafe { comm.ranks.start(request()?, None, Keep::default()) }?;
        // SAFETY:
        // - As above.
        unsafe { write("work", work, handle_of(started)) }
    })
}
