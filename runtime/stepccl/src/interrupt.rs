//! Waits that can be left before their end: what was waited for goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::group::Members;
use crate::request::Request;
use crate::task::{COLLECTIVES, Member};
use crate::work::{Keep, Outcome, Work, WorkState};
use crate::{Communicator, Error};

/// Time between two questions whether to go on.
const EVERY: Duration = Duration::from_millis(100);

/// What lets a wait be left.
#[derive(Clone, Copy)]
pub struct Leave<'a> {
    /// What keeps the memory valid once the wait was left; see [`Communicator::start`]. Called
    /// only where the operation takes long, maybe more than once.
    pub keep: &'a dyn Fn() -> Keep,
    /// Whether to go on waiting; asked about ten times a second.
    pub go_on: &'a dyn Fn() -> bool,
}

impl std::fmt::Debug for Leave<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Leave")
    }
}

impl Communicator {
    /// As [`run`](Self::run), unless the wait is left: then None, and the request goes on.
    ///
    /// # Safety
    ///
    /// As [`run`](Self::run); once left, as [`start`](Self::start) with what `keep` returned.
    pub unsafe fn run_while(
        &self,
        request: impl Into<Request>,
        timeout: Option<Duration>,
        leave: Leave<'_>,
    ) -> Option<Outcome> {
        let request = request.into();
        if request.is_several() {
            // SAFETY:
            // - The caller promises the same.
            return unsafe { self.run_group_while(vec![request], timeout, leave) };
        }
        match self.accept(request, timeout) {
            Ok(member) => {
                self.end_while(self.inner.run_for([member], Some(EVERY), leave.keep), leave)
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// As [`run_group`](Self::run_group), unless the wait is left: then None, and all go on.
    ///
    /// # Safety
    ///
    /// As [`run_group`](Self::run_group); once left, as [`start_group`](Self::start_group) with
    /// what `keep` returned.
    pub unsafe fn run_group_while(
        &self,
        requests: Vec<Request>,
        timeout: Option<Duration>,
        leave: Leave<'_>,
    ) -> Option<Outcome> {
        // SAFETY:
        // - The caller promises the same until this returns, or until what `keep` returned was
        //   dropped.
        match unsafe { self.members("group", requests, timeout) } {
            Ok(Members { members, .. }) => self.run_members_while(members, leave),
            Err(error) => Some(Err(error)),
        }
    }

    fn run_members_while(&self, members: Vec<Member>, leave: Leave<'_>) -> Option<Outcome> {
        if !members.iter().all(|member| member.lane == COLLECTIVES) {
            return self.end_while(self.inner.run_for(members, Some(EVERY), leave.keep), leave);
        }
        // One behind the other; those behind the one that takes long are queued behind it.
        let mut members = members.into_iter();
        while let Some(member) = members.next() {
            match self.inner.run_for([member], Some(EVERY), leave.keep) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Some(Err(error)),
                Err(first) if members.len() == 0 => {
                    return self.wait_while(&[first], leave.go_on);
                }
                Err(first) => {
                    let rest = self.inner.queue(members.collect::<Vec<_>>(), leave.keep);
                    return self.wait_while(&[first, rest], leave.go_on);
                }
            }
        }
        Some(Ok(()))
    }

    /// The outcome of what has run, or of what is queued now.
    fn end_while(&self, ran: Result<Outcome, Arc<WorkState>>, leave: Leave<'_>) -> Option<Outcome> {
        match ran {
            Ok(outcome) => Some(outcome),
            Err(state) => self.wait_while(&[state], leave.go_on),
        }
    }

    /// Wait for all of `states`; the first error of them, in their order.
    fn wait_while(&self, states: &[Arc<WorkState>], go_on: &dyn Fn() -> bool) -> Option<Outcome> {
        let mut all = Ok(());
        for state in states {
            let outcome = loop {
                self.inner.drive_until(state, Instant::now().checked_add(EVERY));
                match state.outcome() {
                    Some(outcome) => break outcome,
                    None if !go_on() => {
                        self.inner.leave();
                        return None;
                    }
                    None => {}
                }
            };
            all = all.and(outcome);
        }
        Some(all)
    }
}

impl Work {
    /// As [`wait`](Self::wait), unless `go_on` says no, which is asked about ten times a second:
    /// then None.
    pub fn wait_while(&self, limit: Option<Duration>, go_on: &dyn Fn() -> bool) -> Option<Outcome> {
        if let Err(error) = self.inner.check_process() {
            return Some(Err(error));
        }
        let started = Instant::now();
        let end = limit.and_then(|limit| started.checked_add(limit));
        loop {
            let next = Instant::now() + EVERY;
            self.inner.drive_until(&self.state, Some(end.map_or(next, |end| end.min(next))));
            if let Some(outcome) = self.outcome() {
                return Some(outcome);
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return Some(Err(self.is_over(started.elapsed())));
            }
            if !go_on() {
                return None;
            }
        }
    }

    pub(crate) fn is_over(&self, waited: Duration) -> Error {
        self.inner.wait_is_over(self.lane, &self.identity, waited)
    }
}
