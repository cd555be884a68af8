//! Drives the operations of one communicator. One thread at a time.

mod blame;
mod pause;
mod solo;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use stepccl_engine::{Engine, LostPeer, RankState};

use crate::context::{Advance, Context, Failure};
use crate::error::{Error, Ranks};
use crate::flight::Flight;
use crate::rounds::Await;
use crate::shape::Shape;
use crate::task::{Entry, Identity, Member, lanes};
use crate::work::{Ended, Outcome};
use pause::Pause;
use solo::Solo;
pub(crate) use solo::{FEW, Left};

/// Longest sleep before deadlines and peers are looked at again.
const PARK: Duration = Duration::from_millis(20);
/// How often peers are asked whether they live, while an operation waits.
const HEALTH: Duration = Duration::from_millis(50);
/// How long channels get to end what they do after a failure.
const QUIET: Duration = Duration::from_secs(10);

/// Looks, some microseconds, that need no clock.
const FEW_LOOKS: u32 = 64;

/// How often a thread looks again before it sleeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub looks: u32,
}

/// What became of operations that had the thread to themselves.
#[derive(Debug)]
pub(crate) enum Ran {
    Ended(Outcome),
    /// Other operations were queued meanwhile, or it took long: what is left must go on in the
    /// queue.
    Interrupted(Left),
}

/// Why no operation can be right any more.
#[derive(Debug)]
pub(crate) struct Fatal {
    error: Error,
    /// Rank that peers are told of.
    culprit: u32,
    /// Operation that ends with the error itself, the others with one that quotes it; none: all
    /// end with the error.
    operation: Option<u64>,
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
    /// Of the last collective that was short.
    pub shape: Option<Shape>,
    looked_at_peers: Option<Instant>,
    glanced: Option<Instant>,
    abort: Arc<Abort>,
    pub flight: Arc<Flight>,
}

impl Progress {
    pub fn new(cx: Context, name: String, abort: Arc<Abort>) -> Self {
        let lanes = lanes(cx.ranks);
        Self {
            cx,
            name,
            lanes: (0..lanes).map(|_| VecDeque::new()).collect(),
            active: Vec::new(),
            ended: Vec::new(),
            broken: None,
            shape: None,
            looked_at_peers: None,
            glanced: None,
            abort,
            flight: Arc::new(Flight::off()),
        }
    }

    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// The error of operations that come after the one that broke the communicator.
    #[inline]
    pub fn broken(&self) -> Option<Error> {
        self.broken.as_ref().map(|first| self.broken_by(first))
    }

    #[cold]
    fn broken_by(&self, first: &Error) -> Error {
        let (communicator, rank) = (self.name.clone(), self.cx.rank);
        Error::Broken { communicator, rank, first: first.to_string() }
    }

    /// Put an operation behind those of its lane.
    pub fn add(&mut self, mut entry: Entry) {
        if let Some(error) = self.broken() {
            self.flight.ends(&entry.identity, false);
            self.ended.push(Ended { state: entry.state, outcome: Err(error), keep: entry.keep });
            return;
        }
        entry.task.posted(&mut self.cx);
        let lane = entry.lane;
        self.flight.enters(&entry);
        if self.lanes[lane].is_empty() {
            self.active.push(lane);
            self.flight.starts(lane, &entry.task, &entry.identity);
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
            let fatal = self.fatal_of_first(&Failure::Engine(error), Solo::NONE);
            self.fail(&fatal);
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
            let before = self.cx.waits.len();
            let advance = entry.task.advance(&mut self.cx);
            self.cx.waits[before..].iter_mut().for_each(|wait| wait.lane = lane);
            match advance {
                Ok(Advance::Idle) => i += 1,
                Ok(Advance::Moved) => {
                    moved = true;
                    i += 1;
                }
                Ok(Advance::Done) => {
                    moved = true;
                    if let Some(Entry { state, keep, identity, .. }) = self.lanes[lane].pop_front()
                    {
                        self.flight.ends(&identity, true);
                        if let Some(next) = self.lanes[lane].front() {
                            self.flight.starts(lane, &next.task, &next.identity);
                        }
                        self.ended.push(Ended { state, outcome: Ok(()), keep });
                    }
                }
                Err(failure) => {
                    let identity = entry.identity;
                    let fatal = self.fatal(&failure, &identity);
                    self.fail(&fatal);
                    return true;
                }
            }
        }
        moved
    }

    /// Run `members`, each in a lane of its own, on this thread to their end, or until other
    /// operations were queued, or `pause` is over: then those that are left are the first of the
    /// queue. Nothing else may be under way.
    pub fn run(
        &mut self,
        members: &mut [Member],
        patience: Patience,
        queued: &AtomicUsize,
        pause: Option<Duration>,
    ) -> Ran {
        let mut looks = 0;
        let mut pause = Pause::new(pause);
        let mut left = Left::all(members);
        loop {
            let fatal = match self.step(members, &mut left) {
                Ok(_) if left.is_none() => return Ran::Ended(Ok(())),
                Ok(true) if !self.is_aborted() => {
                    if pause.is_over_at_move() {
                        return Ran::Interrupted(left);
                    }
                    looks = 0;
                    continue;
                }
                Ok(false) if queued.load(Ordering::Acquire) > 0 => {
                    return Ran::Interrupted(left);
                }
                Ok(false) if looks < patience.looks => {
                    if looks >= FEW_LOOKS {
                        left.of_mut(members).for_each(|m| m.identity.start());
                    }
                    looks += self.look_out(queued, FEW_LOOKS.min(patience.looks - looks));
                    continue;
                }
                Ok(_) if !self.is_aborted() && pause.is_over() => return Ran::Interrupted(left),
                Ok(_) => {
                    left.of_mut(members).for_each(|m| m.identity.start());
                    match self.rest(Solo { members, left }, None) {
                        Ok(()) => continue,
                        Err(fatal) => fatal,
                    }
                }
                Err(fatal) => fatal,
            };
            self.give_up(&fatal);
            let quiet = self.quiesce();
            for Member { task, identity, .. } in left.of_mut(members) {
                // Where nothing uses the memory, a region that cannot be given back is the
                // engine's loss alone.
                if task.release(&mut self.cx).is_err() && !quiet {
                    die(&fatal.error);
                }
                self.flight.ends(identity, false);
            }
            return Ran::Ended(Err(fatal.error));
        }
    }

    /// Look at nothing but what is waited for, until some of it is there: sooner than if the task
    /// looked. Returns the looks made, `most` at most and one at least.
    fn look_out(&self, queued: &AtomicUsize, most: u32) -> u32 {
        let engine = self.cx.engine.as_ref();
        let mut looks = 0;
        loop {
            looks += 1;
            std::hint::spin_loop();
            if looks >= most
                || self.cx.waits.is_empty()
                || self.cx.in_progress() > 0
                || self.cx.waits.iter().any(|w| w.is_over(engine))
                || queued.load(Ordering::Acquire) > 0
            {
                return looks;
            }
        }
    }

    /// Let those of `members` that are left advance. Whether any did.
    #[inline]
    fn step(&mut self, members: &mut [Member], left: &mut Left) -> Result<bool, Box<Fatal>> {
        self.cx.waits.clear();
        if let Err(error) = self.cx.reap() {
            let own = Solo { members, left: *left };
            return Err(self.fatal_of_first(&Failure::Engine(error), own));
        }
        let mut moved = false;
        for at in left.places() {
            let Member { lane, task, identity } = &mut members[at];
            let before = self.cx.waits.len();
            match task.advance(&mut self.cx) {
                Ok(Advance::Done) => {
                    self.flight.ends(identity, true);
                    left.remove(at);
                    moved = true;
                }
                Ok(Advance::Moved) => moved = true,
                Ok(Advance::Idle) => {
                    self.cx.waits[before..].iter_mut().for_each(|wait| wait.lane = *lane);
                }
                Err(failure) => return Err(self.fatal(&failure, identity)),
            }
        }
        Ok(moved)
    }

    /// Nothing moved for a while: look at deadlines and peers, then sleep a little, until `limit`
    /// at most.
    pub fn rest_all(&mut self, limit: Option<Instant>) {
        if let Err(fatal) = self.rest(Solo::NONE, limit) {
            self.fail(&fatal);
        }
    }

    /// Some operation moved; the others have deadlines and peers too. Cheap.
    pub fn glance(&mut self) {
        let now = Instant::now();
        if self.glanced.is_some_and(|t| now.saturating_duration_since(t) < PARK) {
            return;
        }
        self.glanced = Some(now);
        if let Err(fatal) = self.examine(Solo::NONE, now) {
            self.fail(&fatal);
        }
    }

    /// What ends operations, or a short sleep.
    fn rest(&mut self, own: Solo<'_>, limit: Option<Instant>) -> Result<(), Box<Fatal>> {
        let now = Instant::now();
        self.examine(own, now)?;
        self.show_waits(own);
        let left = limit.map_or(PARK, |l| l.saturating_duration_since(now).min(PARK));
        let waits = std::mem::take(&mut self.cx.waits);
        let mut ready = |engine: &dyn Engine| waits.iter().any(|w| w.is_over(engine));
        let parked = self.cx.engine.park(&mut ready, left);
        self.cx.waits = waits;
        parked.map_err(|source| self.fatal_of_first(&Failure::Engine(source), own))
    }

    /// Show in the record what is waited for, and what the engine did so far.
    fn show_waits(&self, own: Solo<'_>) {
        let waits = &self.cx.waits;
        for Member { lane, identity, .. } in own.iter() {
            self.flight.waits(identity, waits.iter().filter(|w| w.lane == *lane));
        }
        for lane in &self.active {
            if let Some(first) = self.lanes[*lane].front() {
                self.flight.waits(&first.identity, waits.iter().filter(|w| w.lane == *lane));
            }
        }
        self.flight.count();
    }

    /// Lanes and operations under way: `own`, which have the thread to themselves, or all of the
    /// lanes.
    fn under_way<'a>(&'a self, own: Solo<'a>) -> impl Iterator<Item = (usize, &'a Identity)> {
        let queued = self
            .active
            .iter()
            .flat_map(|lane| self.lanes[*lane].iter().map(move |entry| (*lane, &entry.identity)));
        own.iter().map(|member| (member.lane, &member.identity)).chain(queued)
    }

    /// Whether an abort, a deadline or a lost peer ends the operations.
    fn examine(&mut self, own: Solo<'_>, now: Instant) -> Result<(), Box<Fatal>> {
        if self.is_aborted() {
            return Err(self.aborted());
        }
        if let Some((lane, late)) = self.under_way(own).find(|(_, i)| i.is_late(now)) {
            let waiting_for = self.waited_for(lane);
            let culprit = waiting_for.0.first().copied().unwrap_or(self.cx.rank);
            let error = Error::Timeout {
                operation: Box::new(self.name_of(late)),
                engine: self.cx.engine.name(),
                waited: late.waited(now),
                waiting_for,
                running: false,
            };
            let fatal = Box::new(Fatal { error, culprit, operation: Some(late.sequence) });
            return Err(self.or_mismatch(fatal, late));
        }
        if self.looked_at_peers.is_none_or(|t| now.saturating_duration_since(t) >= HEALTH) {
            self.looked_at_peers = Some(now);
            if let Some((lost, lane)) = self.lost_peer()
                && let Some((_, needs)) = self.under_way(own).find(|(l, _)| *l == lane)
            {
                return Err(self.or_mismatch(self.peer_lost(lost, needs, now), needs));
            }
        }
        Ok(())
    }

    /// Ranks that the first operation of `lane` waits for.
    pub fn waited_for(&self, lane: usize) -> Ranks {
        let waits = self.cx.waits.iter().filter(|w| w.lane == lane);
        let mut ranks: Vec<u32> = waits.map(|w| w.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        Ranks(ranks)
    }

    /// Whether the user asked to end all operations.
    pub fn is_aborted(&self) -> bool {
        self.abort.reason().is_some()
    }

    fn aborted(&self) -> Box<Fatal> {
        let reason = self.abort.reason().unwrap_or("no reason given").to_owned();
        let (communicator, rank) = (self.name.clone(), self.cx.rank);
        let error = Error::Aborted { communicator, rank, reason };
        Box::new(Fatal { error, culprit: rank, operation: None })
    }

    /// End all operations because the user asked for it.
    pub fn abort_now(&mut self) {
        if self.broken.is_none() {
            let fatal = self.aborted();
            self.fail(&fatal);
        }
    }

    /// End what is under way because the communicator goes away.
    pub fn close(&mut self) {
        if self.active.is_empty() && self.broken.is_none() {
            self.cx.engine.announce(RankState::Closed);
            self.flight.closes();
            let (communicator, rank) = (self.name.clone(), self.cx.rank);
            let reason = "the communicator was destroyed".to_owned();
            self.broken = Some(Error::Aborted { communicator, rank, reason });
        } else {
            self.abort_now();
        }
    }

    /// No operation can be right any more: end all.
    fn fail(&mut self, fatal: &Fatal) {
        self.give_up(fatal);
        let quiet = self.quiesce();
        let after = self.broken().unwrap_or_else(|| fatal.error.clone());
        self.active.clear();
        for mut entry in self.lanes.iter_mut().flat_map(|lane| lane.drain(..)) {
            let own = fatal.operation.is_none_or(|o| o == entry.identity.sequence);
            let outcome = Err(if own { fatal.error.clone() } else { after.clone() });
            // Where nothing uses the memory, a region that cannot be given back is the engine's
            // loss alone.
            if entry.task.release(&mut self.cx).is_err() && !quiet {
                if !entry.keep.holds() {
                    die(&fatal.error);
                }
                // A channel still uses memory that is kept alive: it stays so for ever.
                std::mem::forget(entry.task);
                std::mem::forget(std::mem::take(&mut entry.keep));
            }
            self.flight.ends(&entry.identity, false);
            self.ended.push(Ended { state: entry.state, outcome, keep: entry.keep });
        }
    }

    fn give_up(&mut self, fatal: &Fatal) {
        if self.broken.is_none() {
            self.broken = Some(fatal.error.clone());
            if let Error::Aborted { reason, .. } = &fatal.error {
                self.cx.engine.explain(reason);
            }
            self.cx.engine.announce(RankState::Failed { culprit: fatal.culprit });
            self.flight.fails(&fatal.error, fatal.culprit);
        }
    }

    /// Wait until no channel and no peer touches the callers' memory. Whether that is so.
    fn quiesce(&mut self) -> bool {
        let until = Instant::now() + QUIET;
        while self.cx.in_progress() > 0 {
            if self.cx.reap().is_err() || Instant::now() >= until {
                return false;
            }
            self.cx.forget_completions();
            std::thread::yield_now();
        }
        self.cx.engine.settle(until.saturating_duration_since(Instant::now()))
    }
}

/// A receive from any source ends only when no source is left: one of them, and its lane.
fn all_sources_lost(
    waits: &[Await],
    open: &[Await],
    lost: &[LostPeer],
) -> Option<(LostPeer, usize)> {
    let first = open.first()?;
    let find = |rank: u32| lost.iter().find(|l| l.rank == rank);
    let all = open.len() == waits.len() && open.iter().all(|w| find(w.rank).is_some());
    find(first.rank).filter(|_| all).map(|lost| (*lost, first.lane))
}

/// The caller gets its memory back when its call returns, and a channel would still write it.
fn die(error: &Error) -> ! {
    eprintln!("stepccl: {error}; a channel does not end its copy: aborting");
    std::process::abort()
}
