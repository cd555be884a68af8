//! Several operations as one: started together, ended together.
//!
//! Sends and receives of a group progress at the same time; its collectives run in the order of
//! the list, small ones of the same kind as one.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use stepccl_plan::{Collective, ReduceOp};

use crate::any::AnyTask;
use crate::communicator::check_timeout;
use crate::local::LocalTask;
use crate::packed::{Calls, PackedTask};
use crate::packing::{Shape, runs};
use crate::request::{Message, Request};
use crate::slices;
use crate::task::{COLLECTIVES, Identity, Member, Task, any_lane, send_lane};
use crate::uneven::Piece;
use crate::work::{Keep, Outcome, Work, WorkState};
use crate::{Call, Communicator, Element, Error};

/// Operations made ready, and what messages about all of them say.
pub(crate) struct Members {
    pub members: Vec<Member>,
    state: Arc<WorkState>,
    lane: usize,
    identity: Identity,
}

impl Communicator {
    /// Run `requests` as one; returns when all of them have ended on this rank.
    ///
    /// Every rank gives the same collectives in the same order; sends and receives may stand
    /// anywhere between them. Messages to and from one rank keep their order.
    ///
    /// # Safety
    ///
    /// As [`run`](Self::run) for each request. All of them are under way at the same time, so what
    /// one writes, no other may read or write.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run): the first that went wrong. Where a request is refused, none starts.
    pub unsafe fn run_group(&self, requests: Vec<Request>, timeout: Option<Duration>) -> Outcome {
        if requests.iter().all(Request::is_message) {
            return self.inner.run(self.messages(requests, timeout)?);
        }
        // SAFETY:
        // - The caller promises the same until this returns, which is when all have ended.
        let Members { members, .. } = unsafe { self.members("group", requests, timeout) }?;
        self.run_members(members)
    }

    /// Start `requests` as one; the handle tells when all of them have ended.
    ///
    /// # Safety
    ///
    /// As [`run_group`](Self::run_group), until the work is done; `keep` as for
    /// [`start`](Self::start).
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start). Where a request is refused, none starts.
    pub unsafe fn start_group(
        &self,
        requests: Vec<Request>,
        timeout: Option<Duration>,
        keep: Keep,
    ) -> Result<Work, Error> {
        // SAFETY:
        // - The caller promises the same until the work is done.
        let members = unsafe { self.members("group", requests, timeout) }?;
        Ok(self.start_members(members, keep))
    }

    /// A group that borrows its slices.
    pub const fn group<'data>(&self) -> Group<'_, 'data> {
        Group { communicator: self, requests: Vec::new(), data: PhantomData }
    }

    /// Run a request that is made of several operations.
    ///
    /// # Safety
    ///
    /// As [`run`](Self::run).
    pub(crate) unsafe fn run_several(
        &self,
        request: Request,
        timeout: Option<Duration>,
    ) -> Result<Option<u32>, Error> {
        let name = name_of(&request);
        // SAFETY:
        // - The caller promises the same until this returns, which is when all have ended.
        let Members { members, state, .. } = unsafe { self.members(name, vec![request], timeout) }?;
        self.run_members(members)?;
        Ok(state.source())
    }

    /// Start a request that is made of several operations.
    ///
    /// # Safety
    ///
    /// As [`start`](Self::start).
    pub(crate) unsafe fn start_several(
        &self,
        request: Request,
        timeout: Option<Duration>,
        keep: Keep,
    ) -> Result<Work, Error> {
        let name = name_of(&request);
        // SAFETY:
        // - The caller promises the same until the work is done.
        let members = unsafe { self.members(name, vec![request], timeout) }?;
        Ok(self.start_members(members, keep))
    }

    /// Check messages, then make them ready.
    fn messages(
        &self,
        requests: Vec<Request>,
        timeout: Option<Duration>,
    ) -> Result<Vec<Member>, Error> {
        check_timeout(timeout)?;
        self.check(&requests)?;
        requests.into_iter().map(|request| self.accept(request, timeout)).collect()
    }

    fn run_members(&self, members: Vec<Member>) -> Outcome {
        // One behind the other anyway: without a queue, each is as fast as alone.
        if members.iter().all(|member| member.lane == COLLECTIVES) {
            return members.into_iter().try_for_each(|member| self.inner.run([member]));
        }
        self.inner.run(members)
    }

    fn start_members(&self, members: Members, keep: Keep) -> Work {
        let Members { members, state, lane, identity } = members;
        if members.is_empty() {
            state.finish(Ok(())).call();
        }
        let keeps = keep.shared(members.len());
        let entries = members.into_iter().zip(keeps).map(|(m, keep)| m.queued(&state, keep));
        self.inner.start_all(entries, Arc::clone(&state), lane, identity)
    }

    /// Check all requests, then make them ready.
    ///
    /// # Safety
    ///
    /// As [`run_group`](Self::run_group), until all members have ended or are dropped.
    pub(crate) unsafe fn members(
        &self,
        name: &'static str,
        requests: Vec<Request>,
        timeout: Option<Duration>,
    ) -> Result<Members, Error> {
        check_timeout(timeout)?;
        let (list, others) = self.sort(requests)?;
        let sources = others.iter().filter(|o| matches!(o, Piece::Request(Request::RecvAny(_))));
        if sources.count() > 1 {
            let rule = "a group has one source to tell; start the others beside it";
            return Err(Error::invalid("requests", "several receives from any source", rule));
        }
        let shapes = list.iter().filter_map(Request::as_call).map(|c| Shape::of(c, self.ranks()));
        let runs = runs(shapes);
        let list = Arc::new(list);
        let mut members = Vec::with_capacity(runs.len() + others.len());
        for range in runs {
            // SAFETY:
            // - The caller promises that the memory outlives the members.
            members
                .push(unsafe { self.packed(Calls { list: Arc::clone(&list), range }, timeout) }?);
        }
        let state = Arc::new(WorkState::of_group(members.len() + others.len()));
        for piece in others {
            // SAFETY:
            // - As above.
            members.push(unsafe { self.piece(piece, timeout, &state) }?);
        }
        let bytes = members.iter().map(|member| member.identity.bytes).sum();
        let lane = members.first().map_or(COLLECTIVES, |member| member.lane);
        let identity = match &members[..] {
            [only] => only.identity,
            [first, ..] => Identity { name, bytes, with: None, tag: 0, ..first.identity },
            [] => self.identity(name, 0, None, 0, timeout),
        };
        Ok(Members { members, state, lane, identity })
    }

    /// Refuse requests that cannot be right.
    fn check(&self, requests: &[Request]) -> Result<(), Error> {
        let (rank, ranks) = (self.rank(), self.ranks());
        requests.iter().try_for_each(|request| match request {
            Request::Collective(call) => call.check(rank, ranks),
            Request::Send(message) | Request::Recv(message) => message.check(rank, ranks),
            Request::RecvAny(message) => message.check(ranks),
            // Checked where it is taken to pieces.
            Request::Uneven(_) => Ok(()),
        })
    }

    /// Check `requests`; returns the collectives, in order, and what else they are made of.
    fn sort(&self, requests: Vec<Request>) -> Result<(Vec<Request>, Vec<Piece>), Error> {
        let (rank, ranks) = (self.rank(), self.ranks());
        self.check(&requests)?;
        if requests.iter().all(|request| request.as_call().is_some()) {
            return Ok((requests, Vec::new()));
        }
        let (mut calls, mut others) = (Vec::new(), Vec::new());
        for request in requests {
            match request {
                Request::Collective(_) => calls.push(request),
                Request::Uneven(call) => {
                    for piece in call.pieces(rank, ranks)? {
                        match piece {
                            Piece::Request(Request::Collective(call)) => {
                                call.check(rank, ranks)?;
                                calls.push(call.into());
                            }
                            other => others.push(other),
                        }
                    }
                }
                other => others.push(Piece::Request(other)),
            }
        }
        Ok((calls, others))
    }

    /// Collectives that may run as one; they were checked.
    ///
    /// # Safety
    ///
    /// The memory of the calls must outlive the task.
    unsafe fn packed(&self, calls: Calls, timeout: Option<Duration>) -> Result<Member, Error> {
        let count = calls.iter().map(|call| call.count).sum();
        let Some(first) = calls.iter().next() else {
            return Err(Error::invalid("requests", "none", "a run has one collective at least"));
        };
        if calls.range.len() == 1 {
            return self.collective(first.clone(), timeout);
        }
        let all = Call { count, ..first.clone() };
        let (way, identity) = self.prepare(&all, timeout)?;
        // SAFETY:
        // - The caller promises that the memory outlives the task.
        let task = unsafe { PackedTask::new(calls, count, way) };
        Ok(Member { lane: COLLECTIVES, task: Task::Packed(task), identity })
    }

    /// # Safety
    ///
    /// The memory of the piece must outlive the task.
    unsafe fn piece(
        &self,
        piece: Piece,
        timeout: Option<Duration>,
        state: &Arc<WorkState>,
    ) -> Result<Member, Error> {
        match piece {
            Piece::Request(Request::RecvAny(message)) => {
                let identity =
                    self.identity("recv_any", message.bytes as u64, None, message.tag, timeout);
                let state = Arc::clone(state);
                // SAFETY:
                // - The caller promises that the memory outlives the task.
                let task =
                    unsafe { AnyTask::new(message.tag, message.memory, message.bytes, state) };
                Ok(Member { lane: any_lane(self.ranks()), task: Task::Any(task), identity })
            }
            Piece::Request(request) => self.accept(request, timeout),
            Piece::Local { from, to, bytes } => {
                let identity = self.identity("copy", bytes as u64, None, 0, timeout);
                // SAFETY:
                // - As above.
                let task = unsafe { LocalTask::new(from, to, bytes) };
                Ok(Member { lane: send_lane(self.rank()), task: Task::Local(task), identity })
            }
        }
    }
}

fn name_of(request: &Request) -> &'static str {
    match request {
        Request::Collective(call) => call.collective.name(),
        Request::Send(_) => "send",
        Request::Recv(_) => "recv",
        Request::RecvAny(_) => "recv_any",
        Request::Uneven(call) => call.name(),
    }
}

/// Operations on slices that run as one, see [`Communicator::run_group`].
///
/// ```
/// # use stepccl::{Communicator, Config, MemoryStore, ReduceOp};
/// # let store = MemoryStore::new();
/// # std::thread::scope(|scope| {
/// # for rank in 0..2 {
/// # let store = &store;
/// # scope.spawn(move || -> Result<(), stepccl::Error> {
/// # let ranks = Communicator::new(store, "world.0", rank, 2, &Config::default())?;
/// let (mut a, mut b) = ([1.0f32; 3], [2.0f32; 700]);
/// let (mine, mut theirs) = ([rank as i32; 5], [0; 5]);
/// let mut group = ranks.group();
/// group.all_reduce_in_place(&mut a, ReduceOp::Sum);
/// group.all_reduce_in_place(&mut b, ReduceOp::Sum);
/// // Both ranks send first: within a group that is no deadlock.
/// group.send(&mine, 1 - rank).recv(&mut theirs, 1 - rank);
/// group.run()?;
/// assert_eq!((a, b, theirs), ([2.0; 3], [4.0; 700], [1 - rank as i32; 5]));
/// # Ok(())
/// # });
/// # }
/// # });
/// ```
#[derive(Debug)]
#[must_use = "nothing happens before `run`"]
pub struct Group<'communicator, 'data> {
    communicator: &'communicator Communicator,
    requests: Vec<Request>,
    /// Slices are borrowed until the group has run; no two of them overlap.
    data: PhantomData<&'data mut [u8]>,
}

impl<'data> Group<'_, 'data> {
    /// Reduce `data` of all ranks, in place.
    pub fn all_reduce_in_place<T: Element>(
        &mut self,
        data: &'data mut [T],
        op: ReduceOp,
    ) -> &mut Self {
        self.requests.push(slices::all_reduce_in_place(data, op).into());
        self
    }

    /// Send the root's `data` to every rank.
    pub fn broadcast<T: Element>(&mut self, data: &'data mut [T], root: u32) -> &mut Self {
        self.requests.push(slices::broadcast(data, self.communicator.rank(), root).into());
        self
    }

    /// Any collective with an output apart from its input; `None` where this rank has no such
    /// buffer. Lengths are those of all blocks.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] where the lengths are not of whole blocks; the group stays as it
    /// was.
    pub fn collective<T: Element>(
        &mut self,
        collective: Collective,
        op: ReduceOp,
        input: Option<&'data [T]>,
        output: Option<&'data mut [T]>,
    ) -> Result<&mut Self, Error> {
        let ranks = (self.communicator.rank(), self.communicator.ranks());
        self.requests.push(slices::call(ranks, collective, op, input, output)?.into());
        Ok(self)
    }

    /// Send `data` to `peer`.
    pub fn send<T: Element>(&mut self, data: &'data [T], peer: u32) -> &mut Self {
        let memory = data.as_ptr().cast_mut().cast();
        let bytes = size_of_val(data);
        self.requests.push(Request::Send(Message { peer, tag: 0, memory, bytes }));
        self
    }

    /// Receive `data` from `peer`.
    pub fn recv<T: Element>(&mut self, data: &'data mut [T], peer: u32) -> &mut Self {
        let bytes = size_of_val(data);
        let memory = data.as_mut_ptr().cast();
        self.requests.push(Request::Recv(Message { peer, tag: 0, memory, bytes }));
        self
    }

    /// Run all of it; returns when all have ended on this rank.
    ///
    /// # Errors
    ///
    /// As [`Communicator::run_group`].
    pub fn run(&mut self) -> Outcome {
        let requests = std::mem::take(&mut self.requests);
        // SAFETY:
        // - All slices are borrowed for `'data`, which outlives this call; outputs are borrowed
        //   uniquely, so that no two requests meet where one writes.
        unsafe { self.communicator.run_group(requests, None) }
    }
}
