//! Which process this is. A child of a fork has all objects of its parent but none of its threads,
//! and what it wrote to shared memory would be taken for the parent's: there, nothing is used.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

use crate::errors::ForkedError;

static FORKS: AtomicU64 = AtomicU64::new(0);

/// The process in which something was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Birth {
    forks: u64,
    process: u32,
}

impl Birth {
    pub(crate) fn now() -> Self {
        Self { forks: FORKS.load(Ordering::Relaxed), process: std::process::id() }
    }

    /// Whether this is still the process.
    pub(crate) fn is_here(self) -> bool {
        self.forks == FORKS.load(Ordering::Relaxed)
    }

    /// # Errors
    ///
    /// `ForkedError` in a child that was forked since.
    pub(crate) fn check(self, what: &str) -> PyResult<()> {
        if self.is_here() {
            return Ok(());
        }
        let (parent, child) = (self.process, std::process::id());
        Err(ForkedError::new_err(format!(
            "{what} belongs to process {parent}, and this is {child}, which was forked from it; \
             make a new group here, or start children with spawn or forkserver"
        )))
    }
}

/// Say that this is the child of a fork.
#[pyfunction]
pub(crate) fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}
