//! Errors of the runtime as Python exceptions.

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use stepccl::{BootstrapError, Error as Cause};

create_exception!(stepccl, Error, PyRuntimeError);
create_exception!(stepccl, TimeoutError_, Error);
create_exception!(stepccl, PeerLostError, Error);
create_exception!(stepccl, RefusedError, Error);
create_exception!(stepccl, AbortedError, Error);
create_exception!(stepccl, ForkedError, Error);

pub(crate) fn to_python(error: &Cause) -> PyErr {
    let text = error.to_string();
    match error {
        Cause::InvalidArgument { .. } => PyValueError::new_err(text),
        Cause::Timeout { .. } => TimeoutError_::new_err(text),
        Cause::PeerLost { .. } => PeerLostError::new_err(text),
        Cause::Aborted { .. } => AbortedError::new_err(text),
        Cause::Disagreement { .. } => RefusedError::new_err(text),
        Cause::Bootstrap(BootstrapError::Timeout { .. }) => TimeoutError_::new_err(text),
        Cause::Bootstrap(BootstrapError::PeerLost { .. }) => PeerLostError::new_err(text),
        Cause::Bootstrap(BootstrapError::Refused { .. } | BootstrapError::DuplicateRank { .. }) => {
            RefusedError::new_err(text)
        }
        Cause::Bootstrap(BootstrapError::Argument { .. }) => PyValueError::new_err(text),
        _ => Error::new_err(text),
    }
}
