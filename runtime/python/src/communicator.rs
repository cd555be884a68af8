//! The communicator, for Python.
//!
//! Before: `runtime/python/python/stepccl/collectives.py`.
//! After: `runtime/stepccl/src/communicator.rs`.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use stepccl::{AnyMessage, Call, Keep, MAX_START_TIMEOUT, Memory, Message, Request, UnevenCall};

use crate::errors::{AbortedError, to_python};
use crate::store::PyStore;
use crate::work::{State, Work, seconds};
use crate::{names, settings};

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
}

/// A Python object that lives until an operation is done.
struct Kept(Option<Py<PyAny>>);

impl Kept {
    fn keep(object: Py<PyAny>) -> Keep {
        Keep::new(Self(Some(object)))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let object = self.0.take();
        // Tensors are to be free when their operation has ended, and not at some later call. With
        // no interpreter left, there is nothing to free.
        if Python::try_attach(|_| ()).is_some() {
            Python::attach(|_| drop(object));
        } else {
            std::mem::forget(object);
        }
    }
}

impl Communicator {
    fn open(&self) -> PyResult<Arc<stepccl::Communicator>> {
        self.ranks.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(|| {
            AbortedError::new_err(format!(
                "communicator '{}', rank {}: closed; make a new one",
                self.name, self.rank
            ))
        })
    }

    /// Run or start `request`.
    ///
    /// # Safety
    ///
    /// The memory of `request` must live during the call, and as long as `keep` does.
    unsafe fn submit(
        &self,
        py: Python<'_>,
        request: Request,
        keep: Py<PyAny>,
        synchronous: bool,
        timeout_s: Option<f64>,
    ) -> PyResult<Work> {
        let ranks = self.open()?;
        let timeout = seconds(timeout_s)?;
        py.detach(|| {
            // SAFETY:
            // - The caller promises that the memory lives during the call, and as long as `keep`.
            unsafe {
                if synchronous {
                    ranks.run(request, timeout).map(|()| State::Done)
                } else {
                    ranks.start(request, timeout, Kept::keep(keep)).map(State::Started)
                }
            }
        })
        .map(Work)
        .map_err(|e| to_python(&e))
    }
}

fn message(address: usize, bytes: usize, peer: u32, tag: i32) -> Message {
    Message { peer, tag, memory: std::ptr::with_exposed_provenance_mut(address), bytes }
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
        let store = PyStore(store);
        let ranks = py
            .detach(|| stepccl::Communicator::new(&store, &name, rank, size, &settings))
            .map_err(|e| to_python(&e))?;
        Ok(Self { rank, size, name, ranks: Mutex::new(Some(Arc::new(ranks))) })
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
        // SAFETY:
        // - The package gives addresses of tensors with as many elements as the collective needs,
        //   which live during the call, and as long as `keep`.
        unsafe { self.submit(py, call.into(), keep, synchronous, timeout_s) }
    }

    /// Start a collective whose blocks have these many elements.
    #[expect(clippy::too_many_arguments, reason = "the package passes what torch passes")]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 makes the lists anew for each call")]
    fn start_uneven(
        &self,
        py: Python<'_>,
        collective: &str,
        dtype: &str,
        op: &str,
        send_counts: Vec<usize>,
        recv_counts: Vec<usize>,
        send: Vec<usize>,
        recv: Vec<usize>,
        keep: Py<PyAny>,
        synchronous: bool,
        timeout_s: Option<f64>,
        premul: f64,
    ) -> PyResult<Work> {
        let call = UnevenCall {
            uneven: names::uneven(collective, send_counts, recv_counts)?,
            dtype: names::dtype(dtype)?,
            op: names::op(op)?,
            premul,
            input: Memory::from_pointers(&send),
            output: Memory::from_pointers(&recv),
        };
        // SAFETY:
        // - The package gives addresses of tensors with as many elements as the counts say, which
        //   live during the call, and as long as `keep`.
        unsafe { self.submit(py, call.into(), keep, synchronous, timeout_s) }
    }

    /// Receive bytes from whichever rank sends first.
    #[expect(clippy::too_many_arguments, reason = "the package passes what torch passes")]
    fn recv_any(
        &self,
        py: Python<'_>,
        ptr: usize,
        nbytes: usize,
        tag: i32,
        keep: Py<PyAny>,
        synchronous: bool,
        timeout_s: Option<f64>,
    ) -> PyResult<Work> {
        let memory = std::ptr::with_exposed_provenance_mut(ptr);
        let request = Request::RecvAny(AnyMessage { tag, memory, bytes: nbytes });
        // SAFETY:
        // - The package gives the address of a tensor of so many bytes, which lives during the
        //   call, and as long as `keep`.
        unsafe { self.submit(py, request, keep, synchronous, timeout_s) }
    }

    /// Send bytes to one rank.
    #[expect(clippy::too_many_arguments, reason = "the package passes what torch passes")]
    fn send(
        &self,
        py: Python<'_>,
        ptr: usize,
        nbytes: usize,
        peer: u32,
        tag: i32,
        keep: Py<PyAny>,
        synchronous: bool,
        timeout_s: Option<f64>,
    ) -> PyResult<Work> {
        let request = Request::Send(message(ptr, nbytes, peer, tag));
        // SAFETY:
        // - The package gives the address of a tensor of so many bytes, which lives during the
        //   call, and as long as `keep`.
        unsafe { self.submit(py, request, keep, synchronous, timeout_s) }
    }

    /// Receive bytes from one rank.
    #[expect(clippy::too_many_arguments, reason = "the package passes what torch passes")]
    fn recv(
        &self,
        py: Python<'_>,
        ptr: usize,
        nbytes: usize,
        peer: u32,
        tag: i32,
        keep: Py<PyAny>,
        synchronous: bool,
        timeout_s: Option<f64>,
    ) -> PyResult<Work> {
        let request = Request::Recv(message(ptr, nbytes, peer, tag));
        // SAFETY:
        // - The package gives the address of a tensor of so many bytes, which lives during the
        //   call, and as long as `keep`.
        unsafe { self.submit(py, request, keep, synchronous, timeout_s) }
    }

    /// Fail every operation that is not done, here and at the peers.
    fn abort(&self, py: Python<'_>, reason: &str) -> PyResult<()> {
        let ranks = self.open()?;
        py.detach(|| ranks.abort(reason));
        Ok(())
    }

    /// Let go of everything; operations after it raise AbortedError.
    fn close(&self, py: Python<'_>) {
        let ranks = self.ranks.lock().unwrap_or_else(PoisonError::into_inner).take();
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
