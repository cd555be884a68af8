//! The communicator: ranks that run collectives together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use stepccl_bootstrap::Store;
use stepccl_plan::{Choice, Collective, DType, ReduceOp};

use crate::collective::CollectiveTask;
use crate::connect::{Connected, connect};
use crate::error::With;
use crate::inner::Inner;
use crate::pair::{Direction, PairTask};
use crate::plans::Plans;
use crate::stats::Stats;
use crate::task::{COLLECTIVES, Entry, Identity, Task, recv_lane, send_lane};
use crate::work::{Keep, Outcome, Work, WorkState};
use crate::{Call, Config, Element, Error, Memory};

/// Ranks that run collectives together.
///
/// Collectives of one communicator run in the order in which they were called, which must be the
/// same on every rank; sends and receives of each pair of ranks likewise, beside the collectives.
/// Methods may be called from several threads; only calls that one thread makes are ordered.
///
/// Dropping it ends what is under way with [`Error::Aborted`] and tells the peers.
#[derive(Debug)]
pub struct Communicator {
    inner: Arc<Inner>,
    plans: Mutex<Plans>,
    timeout: Duration,
    sequence: AtomicU64,
    bytes: AtomicU64,
    staging_bytes: usize,
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
    /// ranks are on several hosts, [`Error::System`] and [`Error::Engine`].
    pub fn new(
        store: &dyn Store,
        name: &str,
        rank: u32,
        ranks: u32,
        config: &Config,
    ) -> Result<Self, Error> {
        let Connected { progress, abort, patience, plans, staging_bytes } =
            connect(store, name, rank, ranks, config)?;
        Ok(Self {
            inner: Arc::new(Inner::new(name.to_owned(), progress, abort, patience)),
            plans: Mutex::new(plans),
            timeout: config.timeout,
            sequence: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            staging_bytes,
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
        let mut algorithms: Vec<_> = plans.used().map(|(a, n)| (a.name(), n)).collect();
        algorithms.sort_unstable();
        Stats {
            engine: self.inner.engine,
            operations: self.sequence.load(Ordering::Relaxed),
            message_bytes: self.bytes.load(Ordering::Relaxed),
            staging_bytes: self.staging_bytes,
            algorithms,
            counters: self.inner.meter.read(),
            figures: *plans.figures(),
        }
    }

    /// End all operations, on this rank at once and soon on the others; no later one is possible.
    pub fn abort(&self, reason: &str) {
        self.inner.abort(reason);
    }

    fn plans(&self) -> std::sync::MutexGuard<'_, Plans> {
        // A panic in a planner leaves the memory of plans as it was.
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn identity(
        &self,
        name: &'static str,
        bytes: u64,
        with: Option<With>,
        tag: i32,
        timeout: Option<Duration>,
    ) -> Identity {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Identity {
            name,
            sequence: self.sequence.fetch_add(1, Ordering::Relaxed),
            bytes,
            with,
            tag,
            started: Instant::now(),
            timeout: timeout.unwrap_or(self.timeout),
        }
    }

    fn collective(
        &self,
        call: Call,
        timeout: Option<Duration>,
    ) -> Result<(usize, Task, Identity), Error> {
        call.check(self.rank(), self.ranks())?;
        check_timeout(timeout)?;
        let prepared = self.plans().get(call.collective, call.dtype, call.count)?;
        let bytes = call.message_bytes(self.rank(), self.ranks());
        let with = call.collective.root().map(With::Root);
        let identity = self.identity(call.collective.name(), bytes, with, 0, timeout);
        // SAFETY:
        // - The callers of this function promise that the memory outlives the task.
        let task = unsafe { CollectiveTask::new(call, prepared) };
        Ok((COLLECTIVES, Task::Collective(task), identity))
    }

    fn pair(&self, message: &Message) -> Result<(usize, Task, Identity), Error> {
        let Message { direction, peer, tag, memory, bytes, timeout } = *message;
        check_timeout(timeout)?;
        if peer >= self.ranks() || peer == self.rank() {
            let rule = format!(
                "must be another rank than {} and less than {}, the number of ranks",
                self.rank(),
                self.ranks()
            );
            return Err(Error::invalid("peer", peer, rule));
        }
        if memory.is_null() && bytes > 0 {
            return Err(Error::invalid("buffer", "null", "must point to memory"));
        }
        if bytes as u64 > 1 << 40 {
            return Err(Error::invalid("bytes", bytes, "must be at most 2^40"));
        }
        let (name, lane) = match direction {
            Direction::Send => ("send", send_lane(peer)),
            Direction::Recv => ("recv", recv_lane(peer)),
        };
        let identity = self.identity(name, bytes as u64, Some(With::Peer(peer)), tag, timeout);
        // SAFETY:
        // - The callers of this function promise that the memory outlives the task.
        let task = unsafe { PairTask::new(direction, peer, tag, memory, bytes) };
        Ok((lane, Task::Pair(task), identity))
    }

    /// Run a collective on this thread; returns when this rank is done.
    ///
    /// # Safety
    ///
    /// The memory of `call` must be valid for its blocks (inputs for reads, outputs for writes),
    /// and nothing else may write the inputs or touch the outputs, until this returns.
    ///
    /// # Errors
    ///
    /// Any [`Error`] but those of start-up.
    pub unsafe fn run(&self, call: Call, timeout: Option<Duration>) -> Outcome {
        let (lane, task, identity) = self.collective(call, timeout)?;
        self.inner.run(lane, task, identity)
    }

    /// Start a collective; the handle tells when it has ended.
    ///
    /// # Safety
    ///
    /// As [`run`](Self::run), until the work is done; `keep` may hold what makes it so.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] and [`Error::Plan`]; all else comes from the work.
    pub unsafe fn start(
        &self,
        call: Call,
        timeout: Option<Duration>,
        keep: Keep,
    ) -> Result<Work, Error> {
        let (lane, task, identity) = self.collective(call, timeout)?;
        Ok(self.launch(lane, task, identity, keep))
    }

    fn launch(&self, lane: usize, task: Task, identity: Identity, keep: Keep) -> Work {
        let state = Arc::new(WorkState::default());
        self.inner.start(Entry { lane, task, identity, state, keep })
    }

    /// Send `bytes` bytes to `peer`; returns when the memory may be used again.
    ///
    /// # Safety
    ///
    /// `memory` must be valid for reads of `bytes` bytes, and nothing may write it, until this
    /// returns.
    ///
    /// # Errors
    ///
    /// Any [`Error`] but those of start-up.
    pub unsafe fn send_raw(
        &self,
        memory: *const u8,
        bytes: usize,
        peer: u32,
        tag: i32,
        timeout: Option<Duration>,
    ) -> Outcome {
        let memory = memory.cast_mut();
        let (lane, task, identity) =
            self.pair(&Message { direction: Direction::Send, peer, tag, memory, bytes, timeout })?;
        self.inner.run(lane, task, identity)
    }

    /// Receive `bytes` bytes from `peer`.
    ///
    /// # Safety
    ///
    /// `memory` must be valid for writes of `bytes` bytes, and nothing else may touch it, until
    /// this returns.
    ///
    /// # Errors
    ///
    /// Any [`Error`] but those of start-up; [`Error::MessageMismatch`] where the message has
    /// another size or tag.
    pub unsafe fn recv_raw(
        &self,
        memory: *mut u8,
        bytes: usize,
        peer: u32,
        tag: i32,
        timeout: Option<Duration>,
    ) -> Outcome {
        let (lane, task, identity) =
            self.pair(&Message { direction: Direction::Recv, peer, tag, memory, bytes, timeout })?;
        self.inner.run(lane, task, identity)
    }

    /// Start a send.
    ///
    /// # Safety
    ///
    /// As [`send_raw`](Self::send_raw), until the work is done.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`]; all else comes from the work.
    pub unsafe fn start_send(
        &self,
        memory: *const u8,
        bytes: usize,
        peer: u32,
        tag: i32,
        timeout: Option<Duration>,
        keep: Keep,
    ) -> Result<Work, Error> {
        let memory = memory.cast_mut();
        let (lane, task, identity) =
            self.pair(&Message { direction: Direction::Send, peer, tag, memory, bytes, timeout })?;
        Ok(self.launch(lane, task, identity, keep))
    }

    /// Start a receive.
    ///
    /// # Safety
    ///
    /// As [`recv_raw`](Self::recv_raw), until the work is done.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`]; all else comes from the work.
    pub unsafe fn start_recv(
        &self,
        memory: *mut u8,
        bytes: usize,
        peer: u32,
        tag: i32,
        timeout: Option<Duration>,
        keep: Keep,
    ) -> Result<Work, Error> {
        let (lane, task, identity) =
            self.pair(&Message { direction: Direction::Recv, peer, tag, memory, bytes, timeout })?;
        Ok(self.launch(lane, task, identity, keep))
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        self.inner.close();
    }
}

/// A send or recv as it was called.
#[derive(Clone, Copy)]
struct Message {
    direction: Direction,
    peer: u32,
    tag: i32,
    memory: *mut u8,
    bytes: usize,
    timeout: Option<Duration>,
}

fn check_timeout(timeout: Option<Duration>) -> Result<(), Error> {
    match timeout {
        Some(t) if t.is_zero() => Err(Error::invalid("timeout", "0 s", "must be above 0")),
        _ => Ok(()),
    }
}

/// Slices in, slices out: the calls that wait, and so need no promise from the caller.
impl Communicator {
    fn slices<T: Element>(
        &self,
        collective: Collective,
        op: ReduceOp,
        input: Option<&[T]>,
        output: Option<&mut [T]>,
    ) -> Outcome {
        let (rank, ranks) = (self.rank(), self.ranks());
        let blocks_in = collective.input_blocks(rank, ranks) as usize;
        let blocks_out = collective.output_blocks(rank, ranks) as usize;
        let lengths = (input.map_or(0, <[T]>::len), output.as_ref().map_or(0, |o| o.len()));
        let count =
            lengths.0.checked_div(blocks_in).unwrap_or_else(|| lengths.1 / blocks_out.max(1));
        for (name, length, blocks) in
            [("input", lengths.0, blocks_in), ("output", lengths.1, blocks_out)]
        {
            if length != count * blocks {
                let rule = format!("must be {blocks} block(s) of {count}");
                return Err(Error::invalid(name, format_args!("{length} elements"), rule));
            }
        }
        let memory = |pointer: *mut T, length: usize| {
            if length == 0 { Memory::None } else { Memory::Contiguous(pointer.cast()) }
        };
        let call = Call {
            collective,
            dtype: T::DTYPE,
            op,
            count,
            input: input.map_or(Memory::None, |s| memory(s.as_ptr().cast_mut(), s.len())),
            output: output.map_or(Memory::None, |s| memory(s.as_mut_ptr(), s.len())),
        };
        // SAFETY:
        // - The slices are borrowed, the output uniquely, until `run` returns, and their lengths
        //   are those of the blocks.
        unsafe { self.run(call, None) }
    }

    /// Reduce `input` of all ranks into every rank's `output`; both of the same length.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), like all calls below.
    pub fn all_reduce<T: Element>(&self, input: &[T], output: &mut [T], op: ReduceOp) -> Outcome {
        self.slices(Collective::AllReduce, op, Some(input), Some(output))
    }

    /// Reduce `data` of all ranks, in place.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn all_reduce_in_place<T: Element>(&self, data: &mut [T], op: ReduceOp) -> Outcome {
        let memory = if data.is_empty() {
            Memory::None
        } else {
            Memory::Contiguous(data.as_mut_ptr().cast())
        };
        let call = Call {
            collective: Collective::AllReduce,
            dtype: T::DTYPE,
            op,
            count: data.len(),
            input: memory.clone(),
            output: memory,
        };
        // SAFETY:
        // - The slice is borrowed uniquely until `run` returns; input and output are the same
        //   memory, which an all_reduce allows.
        unsafe { self.run(call, None) }
    }

    /// Send the root's `data` to every rank.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn broadcast<T: Element>(&self, data: &mut [T], root: u32) -> Outcome {
        let memory = if data.is_empty() {
            Memory::None
        } else {
            Memory::Contiguous(data.as_mut_ptr().cast())
        };
        let input = if self.rank() == root { memory.clone() } else { Memory::None };
        let call = Call {
            collective: Collective::Broadcast { root },
            dtype: T::DTYPE,
            op: ReduceOp::Sum,
            count: data.len(),
            input,
            output: memory,
        };
        // SAFETY:
        // - The slice is borrowed uniquely until `run` returns; input and output are the same
        //   memory, which a broadcast allows.
        unsafe { self.run(call, None) }
    }

    /// Reduce `input` of all ranks into the root's `output`; other ranks give `None`.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn reduce<T: Element>(
        &self,
        input: &[T],
        output: Option<&mut [T]>,
        root: u32,
        op: ReduceOp,
    ) -> Outcome {
        self.slices(Collective::Reduce { root }, op, Some(input), output)
    }

    /// Collect `input` of every rank, in order of rank.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn all_gather<T: Element>(&self, input: &[T], output: &mut [T]) -> Outcome {
        self.slices(Collective::AllGather, ReduceOp::Sum, Some(input), Some(output))
    }

    /// Reduce block `i` of every rank's `input` into the `output` of rank `i`.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn reduce_scatter<T: Element>(
        &self,
        input: &[T],
        output: &mut [T],
        op: ReduceOp,
    ) -> Outcome {
        self.slices(Collective::ReduceScatter, op, Some(input), Some(output))
    }

    /// Send block `i` of `input` to rank `i`.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn all_to_all<T: Element>(&self, input: &[T], output: &mut [T]) -> Outcome {
        self.slices(Collective::AllToAll, ReduceOp::Sum, Some(input), Some(output))
    }

    /// Collect `input` of every rank at the root; other ranks give `None`.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn gather<T: Element>(&self, input: &[T], output: Option<&mut [T]>, root: u32) -> Outcome {
        self.slices(Collective::Gather { root }, ReduceOp::Sum, Some(input), output)
    }

    /// Send block `i` of the root's `input` to rank `i`; other ranks give `None`.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn scatter<T: Element>(&self, input: Option<&[T]>, output: &mut [T], root: u32) -> Outcome {
        self.slices(Collective::Scatter { root }, ReduceOp::Sum, input, Some(output))
    }

    /// Wait until every rank has called it.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn barrier(&self) -> Outcome {
        self.slices::<u8>(Collective::Barrier, ReduceOp::Sum, None, None)
    }

    /// Send `data` to `peer`; returns when `data` may be used again.
    ///
    /// # Errors
    ///
    /// As [`send_raw`](Self::send_raw).
    pub fn send<T: Element>(&self, data: &[T], peer: u32) -> Outcome {
        // SAFETY:
        // - The slice is borrowed until the call returns.
        unsafe { self.send_raw(data.as_ptr().cast(), size_of_val(data), peer, 0, None) }
    }

    /// Receive `data` from `peer`, which must send as many bytes.
    ///
    /// # Errors
    ///
    /// As [`recv_raw`](Self::recv_raw).
    pub fn recv<T: Element>(&self, data: &mut [T], peer: u32) -> Outcome {
        let bytes = size_of_val(data);
        // SAFETY:
        // - The slice is borrowed uniquely until the call returns, and any bytes are a value of
        //   every element type.
        unsafe { self.recv_raw(data.as_mut_ptr().cast(), bytes, peer, 0, None) }
    }
}
