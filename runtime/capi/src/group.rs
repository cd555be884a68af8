//! Operations that run as one, collected on the thread that calls them.

use std::cell::RefCell;
use std::sync::Arc;

use stepccl::{Communicator, Error, Keep, Request, Work};

use crate::code::ResultCode;
use crate::guard::{Failure, guard};

/// Requests of one communicator.
struct Part {
    ranks: Arc<Communicator>,
    requests: Vec<Request>,
}

thread_local! {
    /// None while no group is open.
    static OPEN: RefCell<Option<Vec<Part>>> = const { RefCell::new(None) };
}

pub(crate) fn is_open() -> bool {
    OPEN.with_borrow(Option::is_some)
}

/// Put the request into the open group; gives it back where none is open.
pub(crate) fn add(ranks: &Arc<Communicator>, request: Request) -> Option<Request> {
    OPEN.with_borrow_mut(|open| {
        let Some(parts) = open else { return Some(request) };
        match parts.iter_mut().find(|part| Arc::ptr_eq(&part.ranks, ranks)) {
            Some(part) => part.requests.push(request),
            None => parts.push(Part { ranks: Arc::clone(ranks), requests: vec![request] }),
        }
        None
    })
}

/// Open a group on this thread: the waiting forms of operations, called from here to
/// `stepccl_group_end`, return at once and run as one at the end; what is not possible is refused
/// then at the latest. Sends and receives of a group progress at the same time, so that ranks may
/// all send first. Groups do not nest.
///
/// Thread safety: any thread; each thread has its own group.
#[unsafe(no_mangle)]
pub extern "C" fn stepccl_group_start() -> ResultCode {
    guard(|| {
        OPEN.with_borrow_mut(|open| {
            if open.is_some() {
                return Err(Failure::usage("a group is open on this thread: end it first"));
            }
            *open = Some(Vec::new());
            Ok(())
        })
    })
}

/// Run what was called since `stepccl_group_start`, and wait until all of it has ended. Returns the
/// first error. Communicators of the group must be live. Where operations of a communicator are
/// refused, none of that communicator's starts.
///
/// Thread safety: as `stepccl_group_start`, on the same thread.
///
/// # Safety
///
/// The buffers of the group's operations are as those operations ask for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepccl_group_end() -> ResultCode {
    guard(|| {
        let Some(mut parts) = OPEN.take() else {
            return Err(Failure::usage("no group is open on this thread: start one first"));
        };
        if parts.len() == 1
            && let Some(Part { ranks, requests }) = parts.pop()
        {
            // SAFETY:
            // - The callers of the operations promise it until this returns.
            return Ok(unsafe { ranks.run_group(requests, None) }?);
        }
        let started: Vec<Result<Work, Error>> = parts
            .into_iter()
            // SAFETY:
            // - As above: all that is started has ended when this returns.
            .map(|Part { ranks, requests }| unsafe {
                ranks.start_group(requests, None, Keep::default())
            })
            .collect();
        let ends: Vec<_> = started.into_iter().map(|work| work?.wait(None)).collect();
        Ok(ends.into_iter().collect::<Result<(), Error>>()?)
    })
}
