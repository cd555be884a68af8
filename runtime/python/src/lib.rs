//! `stepccl._core`: what the Python package needs of the runtime, and nothing more.
//!
//! Every wait releases the GIL. Addresses come from the package, which takes them from tensors it
//! keeps alive.

mod communicator;
mod errors;
mod flight;
mod names;
mod options;
mod process;
mod settings;
mod signals;
mod store;
mod tensors;
mod window;
mod work;

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Version of the package.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// What this build has.
#[pyfunction]
fn info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let info = PyDict::new(py);
    info.set_item("version", version())?;
    info.set_item("engines", ["host"])?;
    info.set_item("dtypes", names::DTYPES.map(|(name, _)| name))?;
    info.set_item("operations", stepccl::ReduceOp::ALL.map(stepccl::ReduceOp::name))?;
    info.set_item("algorithms", stepccl::Algorithm::ALL.map(stepccl::Algorithm::name))?;
    Ok(info)
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<communicator::Communicator>()?;
    module.add_class::<work::Work>()?;
    module.add("Error", py.get_type::<errors::Error>())?;
    module.add("TimeoutError_", py.get_type::<errors::TimeoutError_>())?;
    module.add("PeerLostError", py.get_type::<errors::PeerLostError>())?;
    module.add("RefusedError", py.get_type::<errors::RefusedError>())?;
    module.add("AbortedError", py.get_type::<errors::AbortedError>())?;
    module.add("ForkedError", py.get_type::<errors::ForkedError>())?;
    module.add("NotDense", py.get_type::<tensors::NotDense>())?;
    module.add("Scattered", py.get_type::<tensors::Scattered>())?;
    module.add_function(wrap_pyfunction!(flight::dump, module)?)?;
    module.add_function(wrap_pyfunction!(flight::trace_json, module)?)?;
    module.add_function(wrap_pyfunction!(process::forked, module)?)?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(info, module)?)
}
