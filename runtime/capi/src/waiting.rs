//! Operations that wait.

use std::ffi::c_void;

use stepccl::Collective;

use crate::code::ResultCode;
use crate::comm::CommHandle;
use crate::dtype::DTypeNumber;
use crate::op::OpNumber;
use crate::request::{Given, wait_for};

/// Every rank gets the reduction of all inputs: `count` elements each. In place: `output` is
/// `input`.
///
/// Thread safety: any thread; calls of one communicator from several threads run in no certain
/// order.
///
/// # Safety
///
/// `comm` is null or live. `input` may be read and `output` written for their elements, and nobody
/// else writes the one or touches the other, until the call returns or the open group ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_all_reduce(
    comm: CommHandle,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: DTypeNumber,
    op: OpNumber,
) -> ResultCode {
    let given = Given { input, output, count, dtype, op: Some(op) };
    // SAFETY:
    // - The caller promises the same.
    unsafe { wait_for(comm, || given.collective(Collective::AllReduce)) }
}

/// Every rank gets the root's input: `count` elements. Only the root reads `input`. In place:
/// `output` is `input`.
///
/// Thread safety: any thread; calls of one communicator from several threads run in no certain
/// order.
///
/// # Safety
///
/// `comm` is null or live. `input` may be read and `output` written for their elements, and nobody
/// else writes the one or touches the other, until the call returns or the open group ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_broadcast(
    comm: CommHandle,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: DTypeNumber,
    root: u32,
) -> ResultCode {
    let given = Given { input, output, count, dtype, op: None };
    // SAFETY:
    // - The caller promises the same.
    unsafe { wait_for(comm, || given.collective(Collective::Broadcast { root })) }
}

/// The root gets the reduction of all inputs: `count` elements each. Only the root writes `output`.
/// In place: `output` is `input`.
///
/// Thread safety: any thread; calls of one communicator from several threads run in no certain
/// order.
///
/// # Safety
///
/// `comm` is null or live. `input` may be read and `output` written for their elements, and nobody
/// else writes the one or touches the other, until the call returns or the open group ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_reduce(
    comm: CommHandle,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: DTypeNumber,
    op: OpNumber,
    root: u32,
) -> ResultCode {
    let given = Given { input, output, count, dtype, op: Some(op) };
    // SAFETY:
    // - The caller promises the same.
    unsafe { wait_for(comm, || given.collective(Collective::Reduce { root })) }
}

/// Every rank gets every input, in order of rank: `input` has `count` elements, `output` has
/// `count` for each rank. In place: `input` is this rank's part of `output`.
///
/// Thread safety: any thread; calls of one communicator from several threads run in no certain
/// order.
///
/// # Safety
///
/// `comm` is null or live. `input` may be read and `output` written for their elements, and nobody
/// else writes the one or touches the other, until the call returns or the open group ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_all_gather(
    comm: CommHandle,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: DTypeNumber,
) -> ResultCode {
    let given = Given { input, output, count, dtype, op: None };
    // SAFETY:
    // - The caller promises the same.
    unsafe { wait_for(comm, || given.collective(Collective::AllGather)) }
}

/// Rank i gets the reduction of part i of all inputs: `input` has `count` elements for each rank,
/// `output` has `count`. In place: `output` is this rank's part of `input`.
///
/// Thread safety: any thread; calls of one communicator from several threads run in no certain
/// order.
///
/// # Safety
///
/// `comm` is null or live. `input` may be read and `output` written for their elements, and nobody
/// else writes the one or touches the other, until the call returns or the open group ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_reduce_scatter(
    comm: CommHandle,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: DTypeNumber,
    op: OpNumber,
) -> ResultCode {
    let given = Given { input, output, count, dtype, op: Some(op) };
    // SAFETY:
    // - The caller promises the same.
    unsafe { wait_for(comm, || given.collective(Collective::ReduceScatter)) }
}

/// Rank i gets part i of every input, in order of rank: `input` and `output` have `count` elements
/// for each rank. Never in place.
///
/// Thread safety: any thread; calls of one communicator from several threads run in no certain
/// order.
///
/// # Safety
///
/// `comm` is null or live. `input` may be read and `output` written for their elements, and nobody
/// else writes the one or touches the other, until the call returns or the open group ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_all_to_all(
    comm: CommHandle,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: DTypeNumber,
) -> ResultCode {
    let given = Given { input, output, count, dtype, op: None };
    // SAFETY:
    // - The caller promises the same.
    unsafe { wait_for(comm, || given.collective(Collective::AllToAll)) }
}

/// The root gets every input, in order of rank: `input` has `count` elements, the root's `output`
/// has `count` for each rank. In place: `input` is the root's part of `output`.
///
/// Thread safety: any thread; calls of one communicator from several threads run in no certain
/// order.
///
/// # Safety
///
/// `comm` is null or live. `input` may be read and `output` written for their elements, and nobody
/// else writes the one or touches the other, until the call returns or the open group ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_gather(
    comm: CommHandle,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: DTypeNumber,
    root: u32,
) -> ResultCode {
    let given = Given { input, output, count, dtype, op: None };
    // SAFETY:
    // - The caller promises the same.
    unsafe { wait_for(comm, || given.collective(Collective::Gather { root })) }
}

/// Rank i gets part i of the root's input: the root's `input` has `count` elements for each rank,
/// `output` has `count`. In place: `output` is the root's part of `input`.
///
/// Thread safety: any thread; calls of one communicator from several threads run in no certain
/// order.
///
/// # Safety
///
/// `comm` is null or live. `input` may be read and `output` written for their elements, and nobody
/// else writes the one or touches the other, until the call returns or the open group ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_scatter(
    comm: CommHandle,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: DTypeNumber,
    root: u32,
) -> ResultCode {
    let given = Given { input, output, count, dtype, op: None };
    // SAFETY:
    // - The caller promises the same.
    unsafe { wait_for(comm, || given.collective(Collective::Scatter { root })) }
}

/// No rank returns before every rank has called.
///
/// Thread safety: any thread; calls of one communicator from several threads run in no certain
/// order.
///
/// # Safety
///
/// `comm` is null or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_barrier(comm: CommHandle) -> ResultCode {
    let given = Given::NOTHING;
    // SAFETY:
    // - The caller promises the same.
    unsafe { wait_for(comm, || given.collective(Collective::Barrier)) }
}

/// Send `count` elements to `peer`, which receives as many bytes.
///
/// Thread safety: any thread; messages that several threads send to or receive from the same rank
/// come in no certain order.
///
/// # Safety
///
/// `comm` is null or live. `input` may be read, and nobody writes it, until the call returns or the
/// open group ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_send(
    comm: CommHandle,
    input: *const c_void,
    count: usize,
    dtype: DTypeNumber,
    peer: u32,
) -> ResultCode {
    let given = Given { input, count, dtype, ..Given::NOTHING };
    // SAFETY:
    // - The caller promises the same.
    unsafe { wait_for(comm, || given.send(peer)) }
}

/// Receive `count` elements from `peer`, which sends as many bytes.
///
/// Thread safety: any thread; messages that several threads send to or receive from the same rank
/// come in no certain order.
///
/// # Safety
///
/// `comm` is null or live. `output` may be written, and nobody else touches it, until the call
/// returns or the open group ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_recv(
    comm: CommHandle,
    output: *mut c_void,
    count: usize,
    dtype: DTypeNumber,
    peer: u32,
) -> ResultCode {
    let given = Given { output, count, dtype, ..Given::NOTHING };
    // SAFETY:
    // - The caller promises the same.
    unsafe { wait_for(comm, || given.recv(peer)) }
}
