//! Waits that a signal of Python (Ctrl-C) ends.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// What a handler of a signal raised during a wait.
#[derive(Debug, Default)]
pub(crate) struct Signals(Mutex<Option<PyErr>>);

impl Signals {
    /// Run the handlers of what has come; whether to go on waiting. Only the main thread has any.
    pub(crate) fn go_on(&self) -> bool {
        match Python::try_attach(|py| py.check_signals()) {
            Some(Err(error)) => {
                *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                false
            }
            Some(Ok(())) | None => true,
        }
    }

    /// What was raised, if anything was.
    pub(crate) fn raised(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The error of a wait that was left.
    pub(crate) fn error(&self) -> PyErr {
        self.raised().unwrap_or_else(|| PyKeyboardInterrupt::new_err("the wait was interrupted"))
    }
}
