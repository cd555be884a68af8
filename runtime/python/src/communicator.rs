//! The communicator, for Python.
//!
//! Before: `runtime/python/python/stepccl/collectives.py`.
//! After: `runtime/stepccl/src/communicator.rs`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use stepccl::{
    AnyMessage, Call, Collective, Keep, Leave, MAX_START_TIMEOUT, Memory, Message, Outcome,
    Request, UnevenCall,
};

use crate::errors::{AbortedError, to_python};
use crate::options::Options;
use crate::process::Birth;
use crate::signals::Signals;
use crate::store::PyStore;
use crate::tensors::Tensors;
use crate::window::{Batch, Window};
use crate::work::{State, Work, seconds};
use crate::{names, settings, tensors};

/// The ranks that run collectives together.
#[pyclass(frozen, module = "stepccl._core")]
#[derive(Debug)]
pub(crate) struct Communicator {
    #[pyo3(get)]
    rank: u32,
    #[pyo3(get)]
    size: u32,
    name: String,
    /// None once closed.
    ranks: Mutex<Option<Arc<stepccl::Communicator>>>,
    /// What is collected, while a window is open.
    window: Mutex<Option<Window>>,
    birth: Birth,
}

/// Python objects that live until an operation is done.
struct Kept(Vec<Py<PyAny>>);

impl Kept {
    fn keep(object: Py<PyAny>) -> Keep {
        Self::keep_all(vec![object])
    }

    fn keep_all(objects: Vec<Py<PyAny>>) -> Keep {
        Keep::new(Self(objects))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let objects = std::mem::take(&mut self.0);
        // Tensors are to be free when their operation has ended, and not at some later call. With
        // no interpreter left, there is nothing to free.
        if Python::try_attach(|_| ()).is_some() {
            Python::attach(|_| drop(objects));
        } else {
            std::mem::forget(objects);
        }
    }
}

impl Communicator {
    fn open(&self) -> PyResult<Arc<stepccl::Communicator>> {
        if !self.birth.is_here() {
            self.birth.check(&format!("communicator '{}', rank {}", self.name, self.rank))?;
        }
        self.ranks.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(|| {
            AbortedError::new_err(format!(
                "communicator '{}', rank {}: closed; make a new one",
                self.name, self.rank
            ))
        })
    }

    /// The ranks, to be let go of; none in the child of a fork, where they are the parent's.
    fn take(&self) -> Option<Arc<stepccl::Communicator>> {
        let ranks = self.ranks.lock().unwrap_or_else(PoisonError::into_inner).take();
        if self.birth.is_here() {
            return ranks;
        }
        std::mem::forget(ranks);
        None
    }

    fn window(&self) -> MutexGuard<'_, Option<Window>> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Run or start `request`, or keep it for the end of the window. None where it has run.
    ///
    /// # Safety
    ///
    /// The memory of `request`, which is that of `tensors`, must live during the call, and as long
    /// as the tensors do.
    unsafe fn submit(
        &self,
        request: Request,
        tensors: &Tensors<'_, '_>,
        synchronous: bool,
        timeout: Option<Duration>,
    ) -> PyResult<Option<Work>> {
        let py = tensors.py();
        let ranks = self.open()?;
        if self.window().is_some() {
            // Python is not called with the lock held: it may let other threads run.
            let (spans, keep) = (tensors.spans()?, tensors.keep()?);
            let mut window = self.window();
            window.get_or_insert_default().push(request, spans, keep, timeout);
            return Ok(Some(Work::new(State::Collected)));
        }
        if synchronous {
            let lists = tensors.lists();
            run(py, &lists, |leave| {
                // SAFETY:
                // - The caller promises that the memory lives during the call, and as long as the
                //   tensors, which the lists hold.
                unsafe { ranks.run_while(request, timeout, leave) }
            })?;
            return Ok(None);
        }
        let keep = Kept::keep(tensors.keep()?);
        // SAFETY:
        // - The memory lives as long as the tensors, which `keep` holds.
        let work = py.detach(|| unsafe { ranks.start(request, timeout, keep) });
        work.map(|work| Some(Work::new(State::Started(work)))).map_err(|e| to_python(&e))
    }
}

/// Run an operation to its end, or until a handler of a signal raises. It then goes on, and keeps
/// `objects`.
fn run(
    py: Python<'_>,
    objects: &[Py<PyAny>],
    call: impl FnOnce(Leave<'_>) -> Option<Outcome> + Send,
) -> PyResult<()> {
    let signals = Signals::default();
    let outcome = py.detach(|| {
        let keep = || {
            let each = Python::attach(|py| objects.iter().map(|o| o.clone_ref(py)).collect());
            Kept::keep_all(each)
        };
        call(Leave { keep: &keep, go_on: &|| signals.go_on() })
    });
    outcome.ok_or_else(|| signals.error())?.map_err(|e| to_python(&e))
}

impl Drop for Communicator {
    fn drop(&mut self) {
        drop(self.take());
    }
}

fn message(address: usize, bytes: usize, peer: u32, tag: i32) -> Message {
    Message { peer, tag, memory: std::ptr::with_exposed_provenance_mut(address), bytes }
}

/// Elements of the blocks of a collective: of every block, or of each one sent and received.
#[derive(FromPyObject)]
enum Counts {
    Even(usize),
    Uneven(Vec<usize>, Vec<usize>),
}

#[pymethods]
impl Communicator {
    /// Meet the other ranks; returns when all of them are there.
    #[new]
    fn new(
        py: Python<'_>,
        store: Py<PyAny>,
        rank: u32,
        size: u32,
        name: String,
        timeout_s: f64,
        config: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let mut settings = settings::config(config)?;
        if let Some(timeout) = seconds(Some(timeout_s))? {
            settings.timeout = timeout;
            settings.start_timeout = timeout.min(MAX_START_TIMEOUT);
        }
        let store = PyStore::new(store);
        let ranks = py
            .detach(|| stepccl::Communicator::new(&store, &name, rank, size, &settings))
            .map_err(|e| store.raised().unwrap_or_else(|| to_python(&e)))?;
        Ok(Self {
            rank,
            size,
            name,
            ranks: Mutex::new(Some(Arc::new(ranks))),
            window: Mutex::new(None),
            birth: Birth::now(),
        })
    }

    /// Start a collective of `count` elements a block.
    #[expect(clippy::too_many_arguments, reason = "the package passes what torch passes")]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 makes the lists anew for each call")]
    #[pyo3(signature = (collective, dtype, op, root, count, send, recv, keep, synchronous, timeout_s, premul = 1.0))]
    fn start(
        &self,
        py: Python<'_>,
        collective: &str,
        dtype: &str,
        op: &str,
        root: u32,
        count: usize,
        send: Vec<usize>,
        recv: Vec<usize>,
        keep: Py<PyAny>,
        synchronous: bool,
        timeout_s: Option<f64>,
        premul: f64,
    ) -> PyResult<Work> {
        let call = Call {
            collective: names::collective(collective, root)?,
            dtype: names::dtype(dtype)?,
            op: names::op(op)?,
            premul,
            count,
            input: Memory::from_pointers(&send),
            output: Memory::from_pointers(&recv),
        };
        let ranks = self.open()?;
        let timeout = seconds(timeout_s)?;
        py.detach(|| {
            // SAFETY:
            // - The caller gives addresses of memory with as many elements as the collective
            //   needs, which lives during the call, and as long as `keep`.
            unsafe {
                if synchronous {
                    ranks.run(call, timeout).map(|()| State::Done)
                } else {
                    ranks.start(call, timeout, Kept::keep(keep)).map(State::Started)
                }
            }
        })
        .map(Work::new)
        .map_err(|e| to_python(&e))
    }

    /// Run or start a collective on torch's tensors. `count` is that of the elements of a block, or
    /// two lists: those of each block sent, and of each received.
    #[expect(clippy::too_many_arguments, reason = "the package passes what torch passes")]
    fn collective(
        &self,
        send: &Bound<'_, PyList>,
        recv: &Bound<'_, PyList>,
        collective: &str,
        root: u32,
        count: Counts,
        opts: &Bound<'_, PyAny>,
        timeout_s: f64,
    ) -> PyResult<Option<Work>> {
        let kind = names::collective(collective, root)?;
        let Options { op, premul, synchronous, timeout } = Options::read(kind, opts, timeout_s)?;
        let tensors = Tensors::read(collective, send, recv)?;
        let dtype = tensors.dtype(collective)?;
        let input = Memory::from_pointers(&tensors.input);
        let output = Memory::from_pointers(&tensors.output);
        let request = match count {
            // All ranks give the same count, so all of them leave here.
            Counts::Even(0) if kind != Collective::Barrier => {
                return Ok((!synchronous).then_some(Work::new(State::Done)));
            }
            Counts::Even(count) => {
                Call { collective: kind, dtype, op, premul, count, input, output }.into()
            }
            Counts::Uneven(sent, received) => {
                let uneven = names::uneven(collective, sent, received)?;
                UnevenCall { uneven, dtype, op, premul, input, output }.into()
            }
        };
        // SAFETY:
        // - The package gives tensors with as many elements as the counts say.
        unsafe { self.submit(request, &tensors, synchronous, timeout) }
    }

    /// Start to send the tensor of `send`, or to receive the one of `recv`; without a peer from
    /// whichever rank sends first. The other list is empty.
    fn message(
        &self,
        send: &Bound<'_, PyList>,
        recv: &Bound<'_, PyList>,
        peer: Option<u32>,
        tag: i32,
        timeout_s: f64,
    ) -> PyResult<Option<Work>> {
        let timeout = seconds(Some(timeout_s))?;
        let what = if send.is_empty() { "recv" } else { "send" };
        let tensors = Tensors::read(what, send, recv)?;
        tensors.dtype(what)?;
        let request = match (&tensors.input[..], &tensors.output[..], peer) {
            (&[address], [], Some(peer)) => {
                Request::Send(message(address, tensors::bytes(&send.get_item(0)?)?, peer, tag))
            }
            ([], &[address], Some(peer)) => {
                Request::Recv(message(address, tensors::bytes(&recv.get_item(0)?)?, peer, tag))
            }
            ([], &[address], None) => {
                let memory = std::ptr::with_exposed_provenance_mut(address);
                let bytes = tensors::bytes(&recv.get_item(0)?)?;
                Request::RecvAny(AnyMessage { tag, memory, bytes })
            }
            _ => return Err(PyValueError::new_err("a message has one tensor, a send also a peer")),
        };
        // SAFETY:
        // - The length is that of the tensor.
        unsafe { self.submit(request, &tensors, false, timeout) }
    }

    /// Collect operations from here on, until `end_group`.
    fn start_group(&self) {
        self.window().get_or_insert_default();
    }

    /// Forget what was collected.
    fn drop_group(&self) {
        *self.window() = None;
    }

    /// Run or start what was collected as one; handles only where it was started.
    fn end_group(&self, py: Python<'_>, synchronous: bool) -> PyResult<Vec<Work>> {
        let batches = self.window().take().unwrap_or_default().into_batches();
        let ranks = self.open()?;
        let mut started = Vec::new();
        for Batch { mut requests, keep, timeout, .. } in batches {
            let alone = if requests.len() == 1 { requests.pop() } else { None };
            if synchronous {
                // SAFETY:
                // - `keep` holds the tensors until the call has returned, and what is kept of it
                //   until all have ended.
                run(py, &keep, |leave| unsafe {
                    match alone {
                        Some(request) => ranks.run_while(request, timeout, leave),
                        None => ranks.run_group_while(requests, timeout, leave),
                    }
                })?;
            } else {
                let keep = Kept::keep(keep.into_pyobject(py)?.into_any().unbind());
                // SAFETY:
                // - `keep` holds the tensors until the work is done.
                let work = py.detach(|| unsafe {
                    match alone {
                        Some(request) => ranks.start(request, timeout, keep),
                        None => ranks.start_group(requests, timeout, keep),
                    }
                });
                started.push(Work::new(State::Started(work.map_err(|e| to_python(&e))?)));
            }
        }
        Ok(started)
    }

    /// Fail every operation that is not done, here and at the peers.
    fn abort(&self, py: Python<'_>, reason: &str) -> PyResult<()> {
        let ranks = self.open()?;
        py.detach(|| ranks.abort(reason));
        Ok(())
    }

    /// Let go of everything; operations after it raise AbortedError.
    fn close(&self, py: Python<'_>) {
        let ranks = self.take();
        py.detach(|| drop(ranks));
    }

    /// Counters since creation.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ranks = self.open()?;
        let stats = py.detach(|| ranks.stats());
        let dict = PyDict::new(py);
        dict.set_item("engine", stats.engine)?;
        dict.set_item("start_up_seconds", stats.start_up.as_secs_f64())?;
        dict.set_item("operations", stats.operations)?;
        dict.set_item("message_bytes", stats.message_bytes)?;
        dict.set_item("bytes_moved", stats.counters.copied_bytes + stats.counters.reduced_bytes)?;
        dict.set_item("staging_bytes", stats.staging_bytes)?;
        let algorithms = PyDict::new(py);
        for (name, sizes) in stats.algorithms {
            algorithms.set_item(name, sizes)?;
        }
        dict.set_item("algorithms", algorithms)?;
        dict.set_item("inline_operations", stats.counters.inline_operations)?;
        dict.set_item("channel_operations", stats.counters.channel_operations)?;
        dict.set_item("full", stats.counters.full)?;
        dict.set_item("signals", stats.counters.signals)?;
        dict.set_item("sleeps", stats.counters.sleeps)?;
        dict.set_item("wakes", stats.counters.wakes)?;
        Ok(dict)
    }
}
