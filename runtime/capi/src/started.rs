//! Operations that are started and go on.

use std::ffi::c_void;

use stepccl::Collective;

use crate::code::ResultCode;
use crate::comm::CommHandle;
use crate::dtype::DTypeNumber;
use crate::op::OpNumber;
use crate::request::{Given, start};
use crate::work::WorkHandle;

/// Start what `stepccl_all_reduce` does; `*work` tells when it has ended, and is null where this
/// fails.
///
/// Thread safety: as `stepccl_all_reduce`. The buffers belong to the library until the work has
/// ended.
///
/// # Safety
///
/// As `stepccl_all_reduce`, until the work has ended; `work` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_all_reduce_start(
    comm: CommHandle,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: DTypeNumber,
    op: OpNumber,
    work: *mut WorkHandle,
) -> ResultCode {
    let given = Given { input, output, count, dtype, op: Some(op) };
    // SAFETY:
    // - The caller promises the same.
    unsafe { start(comm, work, || given.collective(Collective::AllReduce)) }
}

/// Start what `stepccl_broadcast` does; `*work` tells when it has ended, and is null where this
/// fails.
///
/// Thread safety: as `stepccl_broadcast`. The buffers belong to the library until the work has
/// ended.
///
/// # Safety
///
/// As `stepccl_broadcast`, until the work has ended; `work` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_broadcast_start(
    comm: CommHandle,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: DTypeNumber,
    root: u32,
    work: *mut WorkHandle,
) -> ResultCode {
    let given = Given { input, output, count, dtype, op: None };
    // SAFETY:
    // - The caller promises the same.
    unsafe { start(comm, work, || given.collective(Collective::Broadcast { root })) }
}

/// Start what `stepccl_reduce` does; `*work` tells when it has ended, and is null where this fails.
///
/// Thread safety: as `stepccl_reduce`. The buffers belong to the library until the work has ended.
///
/// # Safety
///
/// As `stepccl_reduce`, until the work has ended; `work` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_reduce_start(
    comm: CommHandle,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: DTypeNumber,
    op: OpNumber,
    root: u32,
    work: *mut WorkHandle,
) -> ResultCode {
    let given = Given { input, output, count, dtype, op: Some(op) };
    // SAFETY:
    // - The caller promises the same.
    unsafe { start(comm, work, || given.collective(Collective::Reduce { root })) }
}

/// Start what `stepccl_all_gather` does; `*work` tells when it has ended, and is null where this
/// fails.
///
/// Thread safety: as `stepccl_all_gather`. The buffers belong to the library until the work has
/// ended.
///
/// # Safety
///
/// As `stepccl_all_gather`, until the work has ended; `work` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_all_gather_start(
    comm: CommHandle,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: DTypeNumber,
    work: *mut WorkHandle,
) -> ResultCode {
    let given = Given { input, output, count, dtype, op: None };
    // SAFETY:
    // - The caller promises the same.
    unsafe { start(comm, work, || given.collective(Collective::AllGather)) }
}

/// Start what `stepccl_reduce_scatter` does; `*work` tells when it has ended, and is null where
/// this fails.
///
/// Thread safety: as `stepccl_reduce_scatter`. The buffers belong to the library until the work has
/// ended.
///
/// # Safety
///
/// As `stepccl_reduce_scatter`, until the work has ended; `work` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_reduce_scatter_start(
    comm: CommHandle,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: DTypeNumber,
    op: OpNumber,
    work: *mut WorkHandle,
) -> ResultCode {
    let given = Given { input, output, count, dtype, op: Some(op) };
    // SAFETY:
    // - The caller promises the same.
    unsafe { start(comm, work, || given.collective(Collective::ReduceScatter)) }
}

/// Start what `stepccl_all_to_all` does; `*work` tells when it has ended, and is null where this
/// fails.
///
/// Thread safety: as `stepccl_all_to_all`. The buffers belong to the library until the work has
/// ended.
///
/// # Safety
///
/// As `stepccl_all_to_all`, until the work has ended; `work` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_all_to_all_start(
    comm: CommHandle,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: DTypeNumber,
    work: *mut WorkHandle,
) -> ResultCode {
    let given = Given { input, output, count, dtype, op: None };
    // SAFETY:
    // - The caller promises the same.
    unsafe { start(comm, work, || given.collective(Collective::AllToAll)) }
}

/// Start what `stepccl_gather` does; `*work` tells when it has ended, and is null where this fails.
///
/// Thread safety: as `stepccl_gather`. The buffers belong to the library until the work has ended.
///
/// # Safety
///
/// As `stepccl_gather`, until the work has ended; `work` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_gather_start(
    comm: CommHandle,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: DTypeNumber,
    root: u32,
    work: *mut WorkHandle,
) -> ResultCode {
    let given = Given { input, output, count, dtype, op: None };
    // SAFETY:
    // - The caller promises the same.
    unsafe { start(comm, work, || given.collective(Collective::Gather { root })) }
}

/// Start what `stepccl_scatter` does; `*work` tells when it has ended, and is null where this
/// fails.
///
/// Thread safety: as `stepccl_scatter`. The buffers belong to the library until the work has ended.
///
/// # Safety
///
/// As `stepccl_scatter`, until the work has ended; `work` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_scatter_start(
    comm: CommHandle,
    input: *const c_void,
    output: *mut c_void,
    count: usize,
    dtype: DTypeNumber,
    root: u32,
    work: *mut WorkHandle,
) -> ResultCode {
    let given = Given { input, output, count, dtype, op: None };
    // SAFETY:
    // - The caller promises the same.
    unsafe { start(comm, work, || given.collective(Collective::Scatter { root })) }
}

/// Start what `stepccl_barrier` does; `*work` tells when it has ended, and is null where this
/// fails.
///
/// Thread safety: as `stepccl_barrier`. The buffers belong to the library until the work has ended.
///
/// # Safety
///
/// As `stepccl_barrier`, until the work has ended; `work` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_barrier_start(
    comm: CommHandle,
    work: *mut WorkHandle,
) -> ResultCode {
    let given = Given::NOTHING;
    // SAFETY:
    // - The caller promises the same.
    unsafe { start(comm, work, || given.collective(Collective::Barrier)) }
}

/// Start what `stepccl_send` does; `*work` tells when it has ended, and is null where this fails.
///
/// Thread safety: as `stepccl_send`. The buffers belong to the library until the work has ended.
///
/// # Safety
///
/// As `stepccl_send`, until the work has ended; `work` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_send_start(
    comm: CommHandle,
    input: *const c_void,
    count: usize,
    dtype: DTypeNumber,
    peer: u32,
    work: *mut WorkHandle,
) -> ResultCode {
    let given = Given { input, count, dtype, ..Given::NOTHING };
    // SAFETY:
    // - The caller promises the same.
    unsafe { start(comm, work, || given.send(peer)) }
}

/// Start what `stepccl_recv` does; `*work` tells when it has ended, and is null where this fails.
///
/// Thread safety: as `stepccl_recv`. The buffers belong to the library until the work has ended.
///
/// # Safety
///
/// As `stepccl_recv`, until the work has ended; `work` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_recv_start(
    comm: CommHandle,
    output: *mut c_void,
    count: usize,
    dtype: DTypeNumber,
    peer: u32,
    work: *mut WorkHandle,
) -> ResultCode {
    let given = Given { output, count, dtype, ..Given::NOTHING };
    // SAFETY:
    // - The caller promises the same.
    unsafe { start(comm, work, || given.recv(peer)) }
}
