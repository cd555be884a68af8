//! A c10d store, or anything with its methods, as a store of the runtime.

use std::fmt;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use stepccl::{Store, StoreError};

use crate::signals::Signals;

/// Longest pause between two looks at a key that is waited for.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// A Python object with `set`, `get`, `add` and `check`.
pub(crate) struct PyStore {
    store: Py<PyAny>,
    signals: Signals,
}

impl fmt::Debug for PyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PyStore")
    }
}

impl PyStore {
    pub(crate) fn new(store: Py<PyAny>) -> Self {
        Self { store, signals: Signals::default() }
    }

    /// What a handler of a signal raised while a key was waited for.
    pub(crate) fn raised(&self) -> Option<PyErr> {
        self.signals.raised()
    }

    fn call<T>(
        &self,
        what: &str,
        key: &str,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Result<T, StoreError> {
        if !self.signals.go_on() {
            return Err(StoreError::Other(format!(
                "store.{what}({key:?}): interrupted by a signal"
            )));
        }
        Python::attach(|py| call(self.store.bind(py)))
            .map_err(|error| StoreError::Other(format!("store.{what}({key:?}): {error}")))
    }
}

impl Store for PyStore {
    fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.call("set", key, |store| {
            store.call_method1("set", (key, PyBytes::new(store.py(), value))).map(drop)
        })
    }

    fn get(&self, key: &str, deadline: Instant) -> Result<Vec<u8>, StoreError> {
        // The get of c10d stores waits with the GIL held by none but cannot be ended: look instead.
        let started = Instant::now();
        let mut pause = Duration::from_micros(200);
        loop {
            if let Some(value) = self.try_get(key)? {
                return Ok(value);
            }
            let now = Instant::now();
            if now >= deadline {
                let waited = now.saturating_duration_since(started);
                return Err(StoreError::Timeout { key: key.to_owned(), waited });
            }
            std::thread::sleep(pause.min(deadline - now));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.call("get", key, |store| {
            if !store.call_method1("check", (vec![key],))?.extract::<bool>()? {
                return Ok(None);
            }
            let value = store.call_method1("get", (key,))?;
            value.extract::<Vec<u8>>().map(Some)
        })
    }

    fn add(&self, key: &str, n: i64) -> Result<i64, StoreError> {
        self.call("add", key, |store| store.call_method1("add", (key, n))?.extract())
    }
}
