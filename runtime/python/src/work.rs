//! Handle of an operation, for Python.

use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::process::Birth;
use crate::signals::Signals;

/// One operation that was started.
#[pyclass(frozen, module = "stepccl._core")]
#[derive(Debug)]
pub(crate) struct Work {
    state: State,
    birth: Birth,
}

impl Work {
    pub(crate) fn new(state: State) -> Self {
        Self { state, birth: Birth::now() }
    }
}

/// How far it has come.
#[derive(Debug)]
pub(crate) enum State {
    /// It ended before the call returned.
    Done,
    /// It starts with its group, whose handles tell of it.
    Collected,
    Started(stepccl::Work),
}

fn collected() -> PyErr {
    PyRuntimeError::new_err("this operation is part of a group; end the group, and wait for that")
}

/// A time from Python: none, or seconds above 0.
pub(crate) fn seconds(timeout_s: Option<f64>) -> PyResult<Option<Duration>> {
    timeout_s
        .map(|s| {
            Duration::try_from_secs_f64(s).ok().filter(|d| !d.is_zero()).ok_or_else(|| {
                PyValueError::new_err(format!("timeout_s = {s}: must be above 0 seconds"))
            })
        })
        .transpose()
}

impl Drop for Work {
    fn drop(&mut self) {
        if !self.birth.is_here() {
            // The last handle would end the parent's communicator.
            std::mem::forget(std::mem::replace(&mut self.state, State::Done));
        }
    }
}

#[pymethods]
impl Work {
    /// Return when it is done; raise its error, or what a handler of a signal raises meanwhile.
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<()> {
        let limit = seconds(timeout_s)?;
        self.birth.check("this operation")?;
        match &self.state {
            State::Done => Ok(()),
            State::Collected => Err(collected()),
            State::Started(work) => {
                // What ended, or ends soon, needs no look at signals.
                let signals = Signals::default();
                let outcome = py.detach(|| work.wait_while(limit, &|| signals.go_on()));
                outcome.ok_or_else(|| signals.error())?.map_err(|e| to_python(&e))
            }
        }
    }

    /// Whether it ended, well or not.
    fn is_done(&self) -> bool {
        match &self.state {
            State::Done => true,
            State::Collected => false,
            State::Started(work) => work.is_done(),
        }
    }

    /// Rank whose message a receive from any source has taken.
    fn source(&self) -> Option<u32> {
        match &self.state {
            State::Done | State::Collected => None,
            State::Started(work) => work.source(),
        }
    }

    /// Its error, if it ended with one.
    fn exception(&self) -> Option<PyErr> {
        match &self.state {
            State::Done | State::Collected => None,
            State::Started(work) => work.outcome()?.err().map(|e| to_python(&e)),
        }
    }

    /// Call back once when it ends; at once if it has.
    fn on_done(&self, py: Python<'_>, callback: Py<PyAny>) -> PyResult<()> {
        match &self.state {
            State::Done => callback.call1(py, (py.None(),)).map(drop),
            State::Collected => Err(collected()),
            State::Started(work) => {
                let call = move |outcome: &stepccl::Outcome| {
                    // No interpreter, no one to tell.
                    let _ = Python::try_attach(|py| {
                        let error = outcome.as_ref().err().map(to_python);
                        if let Err(raised) = callback.call1(py, (error,)) {
                            raised.write_unraisable(py, Some(callback.bind(py)));
                        }
                    });
                };
                py.detach(|| work.on_done(call));
                Ok(())
            }
        }
    }
}
