//! Waits that a signal of Python (Ctrl-C) ends.

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

/// What a handler of a signal raised during a wait.
#[derive(Debug, Default)]
pub(crate) struct Signals(RefCell<Option<PyErr>>);

impl Signals {
    /// Run the handlers of what has come; whether to go on waiting. Only the main thread has any.
    pub(crate) fn go_on(&self) -> bool {
        match Python::try_attach(|py| py.check_signals()) {
            Some(Err(error)) => {
                *self.0.borrow_mut() = Some(error);
                false
            }
            Some(Ok(())) | None => true,
        }
    }

    /// What was raised, after a wait that was left.
    pub(crate) fn raised(self) -> PyErr {
        self.0.into_inner().unwrap_or_else(|| {
            pyo3::exceptions::PyKeyboardInterrupt::new_err("the wait was interrupted")
        })
    }
}

/// What was raised on a thread that can only say that something was.
#[derive(Debug, Default)]
pub(crate) struct Raised(Mutex<Option<PyErr>>);

impl Raised {
    pub(crate) fn set(&self, error: PyErr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
