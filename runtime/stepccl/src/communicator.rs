//! The communicator: ranks that run collectives together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stepccl_bootstrap::Store;
use stepccl_engine::Count;
use stepccl_plan::{Choice, Collective, DType};

use crate::config::{MAX_TIMEOUT, check_time};
use crate::connect::{Connected, connect};
use crate::eager_limits::EagerLimits;
use crate::error::With;
use crate::inner::Inner;
use crate::pair::{Direction, PairTask};
use crate::plans::Plans;
use crate::pull::can_pull;
use crate::request::{AnyMessage, Message, Request};
use crate::shape::Shape;
use crate::single_copy::SingleCopy;
use crate::stats::Stats;
use crate::task::{COLLECTIVES, Identity, Member, Task, recv_lane, send_lane};
use crate::way::Way;
use crate::work::{Keep, Outcome, Work, WorkState};
use crate::{Call, Config, Error, logging};

/// Ranks that run collectives together.
///
/// Collectives of one communicator run in the order in which they were called, which must be the
/// same on every rank; sends and receives of each pair of ranks likewise, beside the collectives.
/// Methods may be called from several threads; only calls that one thread makes are ordered.
///
/// Dropping it ends what is under way with [`Error::Aborted`] and tells the peers;
/// [`close`](Self::close) waits for it first.
#[derive(Debug)]
pub struct Communicator {
    pub(crate) inner: Arc<Inner>,
    plans: Mutex<Plans>,
    eager: EagerLimits,
    /// Blocks of at least so many bytes are read from the peers' memory.
    pull_from: usize,
    single_copy: SingleCopy,
    operations: AtomicU64,
    message_bytes: AtomicU64,
    /// Of calls that ended on the short way.
    pub(crate) short_bytes: Count,
    timeout: Duration,
    staging_bytes: usize,
    start_up: Duration,
    /// Settings of communicators that come of this one; without the secret.
    pub(crate) config: Config,
    /// Splits so far.
    pub(crate) splits: AtomicU64,
}

impl Communicator {
    /// Meet the other ranks at `store` and connect to them.
    ///
    /// `name` tells communicators of one store apart; it must be new (`world.0`, `world.1`) and
    /// the same on every rank.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`], [`Error::Bootstrap`] (missing, duplicate or refused ranks),
    /// [`Error::Disagreement`] where ranks have other settings, [`Error::NotSupported`] where
    /// ranks are on several nodes and the engine is `host`, [`Error::System`] and [`Error::Engine`].
    pub fn new(
        store: &dyn Store,
        name: &str,
        rank: u32,
        ranks: u32,
        config: &Config,
    ) -> Result<Self, Error> {
        let started = Instant::now();
        logging::install(config, rank)?;
        let Connected { progress, abort, patience, plans, single_copy, staging_bytes } =
            connect(store, name, rank, ranks, config)?;
        let start_up = started.elapsed();
        log::info!(
            "{}: ready in {start_up:.1?}, {} engine, {staging_bytes} bytes of staging, {:?}",
            progress.flight.who(),
            progress.cx.engine.name(),
            plans.figures()
        );
        Ok(Self {
            inner: Arc::new(Inner::new(name.to_owned(), progress, abort, patience)),
            plans: Mutex::new(plans),
            eager: EagerLimits::new(),
            pull_from: single_copy.least_bytes(),
            single_copy,
            operations: AtomicU64::new(0),
            message_bytes: AtomicU64::new(0),
            short_bytes: Count::default(),
            timeout: config.timeout,
            staging_bytes,
            start_up,
            config: Config { secret: None, ..config.clone() },
            splits: AtomicU64::new(0),
        })
    }

    /// This rank.
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.inner.rank
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.inner.ranks
    }

    /// Name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// What the cost model chooses for this collective and size, with the table it chose from.
    ///
    /// # Errors
    ///
    /// [`Error::Plan`].
    pub fn choice(
        &self,
        collective: Collective,
        dtype: DType,
        count: usize,
    ) -> Result<Choice, Error> {
        self.plans().choice(collective, dtype, count)
    }

    /// What was done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let plans = self.plans();
        let mut algorithms: Vec<_> = plans.used().collect();
        algorithms.sort_unstable();
        Stats {
            engine: self.inner.engine,
            start_up: self.start_up,
            operations: self.operations.load(Ordering::Relaxed),
            message_bytes: self.message_bytes.load(Ordering::Relaxed) + self.short_bytes.get(),
            staging_bytes: self.staging_bytes,
            algorithms,
            counters: self.inner.meter.read(),
            single_copy: self.single_copy.to_string(),
            figures: *plans.figures(),
        }
    }

    /// End all operations, on this rank at once and soon on the others; no later one is possible.
    pub fn abort(&self, reason: &str) {
        self.inner.abort(reason);
    }

    /// Leave in good order: wait until everything that was started on this rank has ended, well or
    /// not, then tell the peers. What another thread is still waiting for in a call of its own ends
    /// with [`Error::Aborted`], and so does every later call, as [`Error::Broken`].
    ///
    /// Peers that still wait for this rank get [`Error::PeerLost`]; peers that have all they need
    /// are not disturbed. Memory and descriptors go with the communicator and the last handle of
    /// its work.
    pub fn close(&self) {
        self.inner.drain();
        self.inner.close();
    }

    fn plans(&self) -> MutexGuard<'_, Plans> {
        // A panic in a planner leaves the memory of plans as it was.
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of the next operation, whose message has `bytes` bytes on this rank.
    fn number(&self, bytes: u64) -> u64 {
        self.message_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.next_sequence()
    }

    /// Number of the next operation.
    #[inline]
    pub(crate) fn next_sequence(&self) -> u64 {
        self.operations.fetch_add(1, Ordering::Relaxed)
    }

    /// What errors say about the next operation, which moves `bytes` bytes.
    pub(crate) fn identity(
        &self,
        name: &'static str,
        bytes: u64,
        with: Option<With>,
        tag: i32,
        timeout: Option<Duration>,
    ) -> Identity {
        let sequence = self.number(bytes);
        let timeout = timeout.unwrap_or(self.timeout);
        Identity { name, sequence, bytes, with, tag, started: None, timeout }
    }

    /// What errors say about collective `sequence`, of `shape`.
    pub(crate) fn identity_of(
        &self,
        shape: &Shape,
        sequence: u64,
        timeout: Option<Duration>,
    ) -> Identity {
        let Shape { name, with, message_bytes: bytes, .. } = *shape;
        let timeout = timeout.unwrap_or(self.timeout);
        Identity { name, sequence, bytes, with, tag: 0, started: None, timeout }
    }

    /// The way of a call that was checked, and its identity.
    pub(crate) fn prepare(
        &self,
        call: &Call,
        timeout: Option<Duration>,
    ) -> Result<(Way, Identity), Error> {
        check_timeout(timeout)?;
        let bytes = call.message_bytes(self.rank(), self.ranks());
        let way = self.way(call)?;
        let with = call.collective.root().map(With::Root);
        Ok((way, self.identity(call.collective.name(), bytes, with, 0, timeout)))
    }

    fn way(&self, call: &Call) -> Result<Way, Error> {
        let Call { collective, dtype, count, .. } = *call;
        if self.is_eager(call) {
            return Ok(Way::Eager);
        }
        if self.can_pull(call) {
            return Ok(Way::Pull);
        }
        Ok(Way::Program(self.plans().get(collective, dtype, count)?))
    }

    #[inline]
    fn can_pull(&self, call: &Call) -> bool {
        call.block_bytes() >= self.pull_from && can_pull(call.collective)
    }

    /// Whether `call` goes through posts; it need not have been checked.
    #[inline]
    pub(crate) fn is_eager(&self, call: &Call) -> bool {
        let collective = call.collective;
        let limit = self.eager.get(collective, || self.plans().eager_limit(collective));
        // A post is the input as it is, without a factor.
        call.block_bytes() <= limit && limit > 0 && call.factor().is_none() && !self.can_pull(call)
    }

    pub(crate) fn collective(
        &self,
        call: Call,
        timeout: Option<Duration>,
    ) -> Result<Member, Error> {
        call.check(self.rank(), self.ranks())?;
        let (way, identity) = self.prepare(&call, timeout)?;
        // SAFETY:
        // - The callers of this function promise that the memory outlives the task.
        let task = unsafe { Task::of_call(call, way, self.rank(), self.ranks()) };
        Ok(Member { lane: COLLECTIVES, task, identity })
    }

    fn message(
        &self,
        direction: Direction,
        message: Message,
        timeout: Option<Duration>,
    ) -> Result<Member, Error> {
        message.check(self.rank(), self.ranks())?;
        check_timeout(timeout)?;
        let Message { peer, tag, memory, bytes } = message;
        let (name, lane) = match direction {
            Direction::Send => ("send", send_lane(peer)),
            Direction::Recv => ("recv", recv_lane(peer)),
        };
        let identity = Identity {
            name,
            sequence: self.number(bytes as u64),
            bytes: bytes as u64,
            with: Some(With::Peer(peer)),
            tag,
            started: None,
            timeout: timeout.unwrap_or(self.timeout),
        };
        // SAFETY:
        // - The callers of this function promise that the memory outlives the task.
        let task = unsafe { PairTask::new(direction, peer, tag, memory, bytes) };
        Ok(Member { lane, task: Task::Pair(task), identity })
    }

    /// Make a request of one operation ready.
    pub(crate) fn accept(
        &self,
        request: Request,
        timeout: Option<Duration>,
    ) -> Result<Member, Error> {
        self.inner.check_process()?;
        match request {
            Request::Collective(call) => self.collective(call, timeout),
            Request::Send(message) => self.message(Direction::Send, message, timeout),
            Request::Recv(message) => self.message(Direction::Recv, message, timeout),
            Request::RecvAny(_) | Request::Uneven(_) => Err(Error::NotSupported {
                what: "several operations in the place of one".to_owned(),
                why: "they go through a group".to_owned(),
            }),
        }
    }

    /// Run a request on this thread; returns when this rank is done: outputs are there, and inputs
    /// may be written again.
    ///
    /// # Safety
    ///
    /// The memory of the request must be valid for its bytes (inputs for reads, outputs for
    /// writes), and nothing else may write the inputs or touch the outputs, until this returns.
    ///
    /// # Errors
    ///
    /// Any [`Error`] but those of start-up.
    pub unsafe fn run(&self, request: impl Into<Request>, timeout: Option<Duration>) -> Outcome {
        let request = match request.into() {
            // SAFETY:
            // - The caller promises the same.
            Request::Collective(call) => return unsafe { self.run_collective(call, timeout) },
            request => request,
        };
        if request.is_several() {
            // SAFETY:
            // - The caller promises the same.
            return unsafe { self.run_several(request, timeout) }.map(drop);
        }
        self.inner.run([self.accept(request, timeout)?])
    }

    /// Receive from whichever rank sends first; returns which rank that was.
    ///
    /// # Safety
    ///
    /// As [`run`](Self::run).
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run). Lost ranks are an error only once no rank is left to send.
    pub unsafe fn run_any(
        &self,
        message: AnyMessage,
        timeout: Option<Duration>,
    ) -> Result<u32, Error> {
        // SAFETY:
        // - The caller promises the same.
        let source = unsafe { self.run_several(Request::RecvAny(message), timeout) }?;
        source.ok_or_else(|| Error::System {
            what: format!("communicator '{}', rank {}", self.name(), self.rank()),
            message: "a receive from any source ended without a source".to_owned(),
        })
    }

    /// Start a request; the handle tells when it has ended.
    ///
    /// # Safety
    ///
    /// As [`run`](Self::run), until the work is done. `keep` holds nothing, or all that keeps the
    /// memory valid: it is leaked where a channel does not let go of the memory after a failure,
    /// and with nothing to leak the process is ended.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] and [`Error::Plan`]; all else comes from the work.
    pub unsafe fn start(
        &self,
        request: impl Into<Request>,
        timeout: Option<Duration>,
        keep: Keep,
    ) -> Result<Work, Error> {
        let request = request.into();
        if request.is_several() {
            // SAFETY:
            // - The caller promises the same.
            return unsafe { self.start_several(request, timeout, keep) };
        }
        let state = Arc::new(WorkState::default());
        Ok(self.inner.start(self.accept(request, timeout)?.queued(&state, keep)))
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        self.inner.close();
    }
}

#[inline]
pub(crate) fn check_timeout(timeout: Option<Duration>) -> Result<(), Error> {
    timeout.map_or(Ok(()), |time| check_time("timeout", time, MAX_TIMEOUT))
}
