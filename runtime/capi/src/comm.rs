//! Communicators.

use std::ffi::{CStr, c_char};
use std::sync::Arc;

use stepccl::{Communicator, TcpStoreServer};

use crate::code::ResultCode;
use crate::guard::{Failure, guard};
use crate::{settings, store};

/// A communicator; opaque to C.
#[derive(Debug)]
pub struct Comm {
    pub(crate) ranks: Arc<Communicator>,
    /// Serves the store of the communicator where this rank is rank 0 of a TCP store.
    _server: Option<Arc<TcpStoreServer>>,
}

/// Ranks that run collectives together. Collectives of one communicator run in the order of the
/// calls, which must be the same on every rank.
pub type CommHandle = *mut Comm;

impl Comm {
    fn handle(ranks: Communicator, server: Option<Arc<TcpStoreServer>>) -> CommHandle {
        Box::into_raw(Box::new(Self { ranks: Arc::new(ranks), _server: server }))
    }
}

/// The communicator behind a handle.
///
/// # Safety
///
/// `comm` must be null or live.
pub(crate) unsafe fn comm_of<'a>(comm: CommHandle) -> Result<&'a Comm, Failure> {
    // SAFETY:
    // - The caller promises that it is null or live; only shared references are ever made of it.
    unsafe { comm.as_ref() }.ok_or_else(|| null("comm"))
}

pub(crate) fn null(name: &str) -> Failure {
    Failure::argument(format!("{name} = NULL: must not be null"))
}

/// A text of C.
///
/// # Safety
///
/// `text` must be null or end with a 0 byte, and outlive the result.
unsafe fn text_of<'a>(name: &str, text: *const c_char) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(null(name));
    }
    // SAFETY:
    // - It is not null; the caller promises the rest.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure::argument(format!("{name} = {text:?}: must be UTF-8")))
}

/// Write a result through a pointer of C.
///
/// # Safety
///
/// `to` must be null or valid for a write.
pub(crate) unsafe fn write<T>(name: &str, to: *mut T, value: T) -> Result<(), Failure> {
    if to.is_null() {
        return Err(null(name));
    }
    // SAFETY:
    // - It is not null; the caller promises that it may be written.
    unsafe { to.write(value) };
    Ok(())
}

/// Meet the other ranks and connect to them; every rank calls it, and it returns when all are
/// there.
///
/// `store` says where they meet: `file:DIRECTORY`, a directory that all ranks share and that is
/// new for each job, or `tcp:HOST:PORT`, where rank 0 serves. `name` tells communicators of one
/// store apart and must be new. `config` is null or settings over those of the environment, such
/// as `timeout=30 engine=tcp`. `*comm` is null where it fails.
///
/// Thread safety: any thread, any time.
///
/// # Safety
///
/// The texts end with a 0 byte; `comm` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_comm_create(
    store: *const c_char,
    name: *const c_char,
    rank: u32,
    ranks: u32,
    config: *const c_char,
    comm: *mut CommHandle,
) -> ResultCode {
    guard(|| {
        // SAFETY:
        // - The caller promises that it may be written, and that the texts are texts.
        let (store, name, config) = unsafe {
            write("comm", comm, std::ptr::null_mut())?;
            let config = if config.is_null() { "" } else { text_of("config", config)? };
            (text_of("store", store)?, text_of("name", name)?, config)
        };
        let config = settings::parse(config)?;
        let place = store::open(store, rank, &config)?;
        let made = Communicator::new(&*place.store, name, rank, ranks, &config)?;
        // SAFETY:
        // - As above.
        unsafe { write("comm", comm, Comm::handle(made, place.server)) }
    })
}

/// Make communicators of parts of the ranks of `comm`: one of all ranks with the same `color`, in
/// the order of `key`, then of rank. Every rank of `comm` calls it, in the order of collectives;
/// one with a negative `color` takes part in none and gets null. `*part` is null where it fails.
///
/// Thread safety: as a collective.
///
/// # Safety
///
/// `comm` is null or live; `part` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_comm_split(
    comm: CommHandle,
    color: i32,
    key: i32,
    part: *mut CommHandle,
) -> ResultCode {
    guard(|| {
        // SAFETY:
        // - The caller promises both.
        let comm = unsafe {
            write("part", part, std::ptr::null_mut())?;
            comm_of(comm)?
        };
        let made = comm.ranks.split(u32::try_from(color).ok(), key)?;
        let handle = made.map_or(std::ptr::null_mut(), |ranks| Comm::handle(ranks, None));
        // SAFETY:
        // - As above.
        unsafe { write("part", part, handle) }
    })
}

/// Leave in good order: wait until all that was started here has ended, tell the other ranks and
/// free the handle. Work of it stays valid.
///
/// Thread safety: no other thread may use `comm` during the call; nobody may after it.
///
/// # Safety
///
/// `comm` is null or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_comm_destroy(comm: CommHandle) -> ResultCode {
    guard(|| {
        if comm.is_null() {
            return Err(null("comm"));
        }
        // SAFETY:
        // - It came from `Comm::handle`, and the caller gives it away.
        let comm = unsafe { Box::from_raw(comm) };
        comm.ranks.close();
        Ok(())
    })
}

/// End all operations of `comm`: on this rank at once with `STEPCCL_ABORTED` and `reason`, which
/// may be null, and soon on the others with `STEPCCL_PEER_LOST`. No later one is possible; the
/// handle is still to be destroyed.
///
/// Thread safety: any thread, also while others wait in calls of `comm`.
///
/// # Safety
///
/// `comm` is null or live; `reason` is null or ends with a 0 byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_comm_abort(comm: CommHandle, reason: *const c_char) -> ResultCode {
    guard(|| {
        // SAFETY:
        // - The caller promises both.
        let (comm, reason) = unsafe {
            let none = reason.is_null();
            (comm_of(comm)?, if none { "no reason given" } else { text_of("reason", reason)? })
        };
        comm.ranks.abort(reason);
        Ok(())
    })
}

/// This rank, from 0.
///
/// Thread safety: any thread, any time.
///
/// # Safety
///
/// `comm` is null or live; `rank` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_comm_rank(comm: CommHandle, rank: *mut u32) -> ResultCode {
    // SAFETY:
    // - The caller promises both.
    guard(|| unsafe { write("rank", rank, comm_of(comm)?.ranks.rank()) })
}

/// Number of ranks.
///
/// Thread safety: any thread, any time.
///
/// # Safety
///
/// `comm` is null or live; `ranks` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_comm_size(comm: CommHandle, ranks: *mut u32) -> ResultCode {
    // SAFETY:
    // - The caller promises both.
    guard(|| unsafe { write("ranks", ranks, comm_of(comm)?.ranks.ranks()) })
}
