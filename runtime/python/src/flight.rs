//! The flight record of this process, for Python.

use pyo3::prelude::*;
use stepccl::flight_record::{scan, table, trace};

/// The last operations of this process's communicators, for people.
#[pyfunction]
pub(crate) fn dump(py: Python<'_>, operations: usize) -> String {
    py.detach(|| table::own(operations))
}

/// They as the JSON of a trace.
#[pyfunction]
pub(crate) fn trace_json(py: Python<'_>) -> String {
    py.detach(|| trace::export(&scan(Some(std::process::id())).found).to_string())
}
