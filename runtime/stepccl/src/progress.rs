//! Drives the operations of one communicator. One thread at a time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use stepccl_engine::{Engine, EngineError, LostPeer, RankState};

use crate::context::{Advance, Context, Failure};
use crate::error::{Error, LossReason, OperationName, Ranks, With};
use crate::task::{Entry, Identity, Task};
use crate::work::{Ended, Outcome};

/// Longest sleep before deadlines and peers are looked at again.
const PARK: Duration = Duration::from_millis(20);
/// How often peers are asked whether they live, while an operation waits.
const HEALTH: Duration = Duration::from_millis(50);
/// How long channels get to end what they do after a failure.
const QUIET: Duration = Duration::from_secs(10);

/// How often a thread looks again before it sleeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub looks: u32,
}

/// What became of an operation that had the thread to itself.
#[derive(Debug)]
pub(crate) enum Ran {
    Ended(Outcome),
    /// Other operations were queued meanwhile: it must go on among them.
    Interrupted(Box<Task>),
}

/// Ends all operations of a communicator from another thread.
#[derive(Debug, Default)]
pub(crate) struct Abort {
    reason: OnceLock<String>,
}

impl Abort {
    pub fn request(&self, reason: &str) {
        // The first reason stands.
        let _ = self.reason.set(reason.to_owned());
    }

    pub fn reason(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }
}

/// Operations of a communicator and what they share.
#[derive(Debug)]
pub(crate) struct Progress {
    pub cx: Context,
    name: String,
    lanes: Box<[VecDeque<Entry>]>,
    active: Vec<usize>,
    ended: Vec<Ended>,
    broken: Option<Error>,
    looked_at_peers: Option<Instant>,
    abort: Arc<Abort>,
}

impl Progress {
    pub fn new(cx: Context, name: String, abort: Arc<Abort>) -> Self {
        let lanes = 1 + 2 * cx.ranks as usize;
        Self {
            cx,
            name,
            lanes: (0..lanes).map(|_| VecDeque::new()).collect(),
            active: Vec::new(),
            ended: Vec::new(),
            broken: None,
            looked_at_peers: None,
            abort,
        }
    }

    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    pub fn broken(&self) -> Option<Error> {
        let first = self.broken.as_ref()?.to_string();
        Some(Error::Broken { communicator: self.name.clone(), rank: self.cx.rank, first })
    }

    /// Put an operation behind those of its lane.
    pub fn add(&mut self, entry: Entry) {
        if let Some(error) = self.broken() {
            self.ended.push(Ended { state: entry.state, outcome: Err(error), keep: entry.keep });
            return;
        }
        let lane = entry.lane;
        if self.lanes[lane].is_empty() {
            self.active.push(lane);
        }
        self.lanes[lane].push_back(entry);
    }

    /// Operations that have ended since the last call.
    pub fn take_ended(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.ended)
    }

    pub fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Let the first operation of every lane advance. Whether any did.
    pub fn pass(&mut self) -> bool {
        self.cx.waits.clear();
        if let Err(error) = self.cx.reap() {
            self.fail_on_first(&Failure::Engine(error));
            return true;
        }
        let mut moved = false;
        let mut i = 0;
        while i < self.active.len() {
            let lane = self.active[i];
            let Some(entry) = self.lanes[lane].front_mut() else {
                self.active.swap_remove(i);
                continue;
            };
            match entry.task.advance(&mut self.cx) {
                Ok(Advance::Idle) => i += 1,
                Ok(Advance::Moved) => {
                    moved = true;
                    i += 1;
                }
                Ok(Advance::Done) => {
                    moved = true;
                    if let Some(Entry { state, keep, .. }) = self.lanes[lane].pop_front() {
                        self.ended.push(Ended { state, outcome: Ok(()), keep });
                    }
                }
                Err(failure) => {
                    let identity = entry.identity;
                    let error = self.explain(&failure, &identity);
                    self.fail(lane, &error, self.cx.rank);
                    return true;
                }
            }
        }
        moved
    }

    /// Run `task` on this thread to its end, or until other operations were queued.
    /// Nothing else may be under way.
    pub fn run(
        &mut self,
        mut task: Task,
        identity: &Identity,
        patience: Patience,
        queued: &AtomicUsize,
    ) -> Ran {
        let mut looks = 0;
        loop {
            self.cx.waits.clear();
            let advance = match self.cx.reap() {
                Ok(()) => task.advance(&mut self.cx),
                Err(error) => Err(Failure::Engine(error)),
            };
            let (error, culprit) = match advance {
                Ok(Advance::Done) => return Ran::Ended(Ok(())),
                Ok(Advance::Moved) => {
                    looks = 0;
                    continue;
                }
                Ok(Advance::Idle) if queued.load(Ordering::Acquire) > 0 => {
                    return Ran::Interrupted(Box::new(task));
                }
                Ok(Advance::Idle) if looks < patience.looks => {
                    looks += 1;
                    std::hint::spin_loop();
                    continue;
                }
                Ok(Advance::Idle) => match self.rest(std::slice::from_ref(identity)) {
                    Ok(()) => continue,
                    Err(end) => end,
                },
                Err(failure) => (self.explain(&failure, identity), self.cx.rank),
            };
            self.give_up(&error, culprit);
            if !self.quiesce() {
                // The caller gets its memory back when this returns, and a channel still uses it.
                eprintln!("stepccl: {error}; a channel does not end its copy: aborting");
                std::process::abort();
            }
            // Nothing uses the memory: a region that cannot be given back is the engine's loss.
            let _ = task.release(&mut self.cx);
            return Ran::Ended(Err(error));
        }
    }

    /// Nothing moved for a while: look at deadlines and peers, then sleep a little.
    pub fn rest_all(&mut self) {
        let identities: Vec<Identity> =
            self.lanes.iter().flatten().map(|entry| entry.identity).collect();
        if let Err((error, culprit)) = self.rest(&identities) {
            let lane = self.active.first().copied().unwrap_or(0);
            self.fail(lane, &error, culprit);
        }
    }

    /// The error that ends operations, with the rank to blame, or a short sleep.
    fn rest(&mut self, identities: &[Identity]) -> Result<(), (Error, u32)> {
        if let Some(reason) = self.abort.reason() {
            let (communicator, reason) = (self.name.clone(), reason.to_owned());
            let error = Error::Aborted { communicator, rank: self.cx.rank, reason };
            return Err((error, self.cx.rank));
        }
        let now = Instant::now();
        if let Some(late) = identities.iter().find(|i| i.is_late(now)) {
            let waiting_for = self.waited_for();
            let culprit = waiting_for.0.first().copied().unwrap_or(self.cx.rank);
            let error = Error::Timeout {
                operation: Box::new(self.name_of(late)),
                engine: self.cx.engine.name(),
                waited: now.saturating_duration_since(late.started),
                waiting_for,
            };
            return Err((error, culprit));
        }
        if self.looked_at_peers.is_none_or(|t| now.saturating_duration_since(t) >= HEALTH) {
            self.looked_at_peers = Some(now);
            if let (Some(lost), Some(first)) = (self.lost_peer(), identities.first()) {
                return Err(self.peer_lost(lost, first, now));
            }
        }
        let waits = std::mem::take(&mut self.cx.waits);
        let mut ready = |engine: &dyn Engine| {
            waits.iter().any(|w| engine.flag(w.rank, w.flag).is_ok_and(|v| v >= w.value))
        };
        let parked = self.cx.engine.park(&mut ready, PARK);
        self.cx.waits = waits;
        parked.map_err(|source| {
            let context = format!("communicator '{}', rank {}: waiting", self.name, self.cx.rank);
            (Error::Engine { context, source }, self.cx.rank)
        })
    }

    /// A peer whose loss keeps a present wait from ever ending.
    fn lost_peer(&mut self) -> Option<LostPeer> {
        let mut lost = Vec::new();
        self.cx.engine.lost_peers(&mut lost);
        let engine = self.cx.engine.as_ref();
        let open = |w: &&crate::rounds::Await| {
            engine.flag(w.rank, w.flag).is_ok_and(|value| value < w.value)
        };
        // A rank that left in good order is missed only by who waits for it.
        let awaited: Vec<u32> = self.cx.waits.iter().filter(open).map(|w| w.rank).collect();
        if awaited.is_empty() {
            return None;
        }
        lost.into_iter().find(|l| l.state != RankState::Closed || awaited.contains(&l.rank))
    }

    fn peer_lost(&self, lost: LostPeer, first: &Identity, now: Instant) -> (Error, u32) {
        let (reason, culprit) = match lost.state {
            RankState::Running => (LossReason::Died, lost.rank),
            RankState::Closed => (LossReason::Closed, lost.rank),
            RankState::Failed { culprit } => (LossReason::Failed { culprit }, culprit),
        };
        let error = Error::PeerLost {
            operation: Box::new(self.name_of(first)),
            peer: lost.rank,
            pid: lost.pid,
            reason,
            waited: now.saturating_duration_since(first.started),
        };
        (error, culprit)
    }

    fn waited_for(&self) -> Ranks {
        let mut ranks: Vec<u32> = self.cx.waits.iter().map(|w| w.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        Ranks(ranks)
    }

    pub fn name_of(&self, identity: &Identity) -> OperationName {
        OperationName {
            communicator: self.name.clone(),
            rank: self.cx.rank,
            ranks: self.cx.ranks,
            name: identity.name,
            sequence: identity.sequence,
            bytes: identity.bytes,
            with: identity.with,
        }
    }

    fn explain(&self, failure: &Failure, identity: &Identity) -> Error {
        let operation = self.name_of(identity);
        match failure {
            Failure::Engine(source) => self.engine_error(&operation, source),
            Failure::Mismatch { sent_bytes, sent_tag } => Error::MessageMismatch {
                peer: match identity.with {
                    Some(With::Peer(peer) | With::Root(peer)) => peer,
                    None => self.cx.rank,
                },
                sent_bytes: *sent_bytes,
                sent_tag: *sent_tag,
                expected_bytes: identity.bytes,
                expected_tag: identity.tag,
                operation: Box::new(operation),
            },
        }
    }

    fn engine_error(&self, operation: &OperationName, source: &EngineError) -> Error {
        let context = format!("{operation}, {} engine", self.cx.engine.name());
        Error::Engine { context, source: source.clone() }
    }

    fn fail_on_first(&mut self, failure: &Failure) {
        let lane = self.active.first().copied().unwrap_or(0);
        let error = match self.lanes[lane].front() {
            Some(entry) => self.explain(failure, &entry.identity),
            None => Error::System {
                what: format!("communicator '{}'", self.name),
                message: format!("{failure:?}"),
            },
        };
        self.fail(lane, &error, self.cx.rank);
    }

    /// End all operations because the user asked for it.
    pub fn abort_now(&mut self) {
        if self.broken.is_some() {
            return;
        }
        let reason = self.abort.reason().unwrap_or("no reason given").to_owned();
        let (communicator, rank) = (self.name.clone(), self.cx.rank);
        let lane = self.active.first().copied().unwrap_or(0);
        self.fail(lane, &Error::Aborted { communicator, rank, reason }, rank);
    }

    /// End what is under way because the communicator goes away.
    pub fn close(&mut self) {
        if self.active.is_empty() {
            if self.broken.is_none() {
                self.cx.engine.announce(RankState::Closed);
            }
        } else {
            let (communicator, rank) = (self.name.clone(), self.cx.rank);
            let reason = "the communicator was destroyed with operations under way".to_owned();
            let lane = self.active[0];
            self.fail(lane, &Error::Aborted { communicator, rank, reason }, rank);
        }
        if self.broken.is_none() {
            let (communicator, rank) = (self.name.clone(), self.cx.rank);
            let reason = "the communicator was destroyed".to_owned();
            self.broken = Some(Error::Aborted { communicator, rank, reason });
        }
    }

    /// No operation can be right any more: end all, the first of `lane` with `error`.
    pub fn fail(&mut self, lane: usize, error: &Error, culprit: u32) {
        self.give_up(error, culprit);
        let quiet = self.quiesce();
        let after = self.broken().unwrap_or_else(|| error.clone());
        self.active.clear();
        for (i, entries) in self.lanes.iter_mut().enumerate() {
            for (place, mut entry) in entries.drain(..).enumerate() {
                let own = i == lane && place == 0;
                let outcome = Err(if own { error.clone() } else { after.clone() });
                if quiet {
                    // Nothing uses the memory: a region that cannot be given back is the
                    // engine's loss alone.
                    let _ = entry.task.release(&mut self.cx);
                } else {
                    std::mem::forget(entry.task);
                    std::mem::forget(std::mem::take(&mut entry.keep));
                }
                self.ended.push(Ended { state: entry.state, outcome, keep: entry.keep });
            }
        }
    }

    fn give_up(&mut self, error: &Error, culprit: u32) {
        if self.broken.is_none() {
            self.broken = Some(error.clone());
            self.cx.engine.announce(RankState::Failed { culprit });
        }
    }

    /// Wait until no channel touches the callers' memory. Whether that is so.
    fn quiesce(&mut self) -> bool {
        let until = Instant::now() + QUIET;
        while self.cx.in_progress() > 0 {
            if self.cx.reap().is_err() || Instant::now() >= until {
                return false;
            }
            self.cx.forget_completions();
            std::thread::yield_now();
        }
        true
    }
}
