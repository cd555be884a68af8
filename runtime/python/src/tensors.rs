//! What an operation needs of torch's tensors: where their elements lie, and of what type they are.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyList;
use stepccl::DType;

use crate::names::DTYPES;
use crate::window::Span;

create_exception!(
    stepccl,
    Scattered,
    PyException,
    "The elements of a tensor do not lie in a row; nothing was started."
);

create_exception!(stepccl, NotDense, PyTypeError, "A tensor is not dense; nothing was started.");

/// torch's own objects, to be compared by identity.
struct Known {
    strided: Py<PyAny>,
    dtypes: Vec<(Py<PyAny>, DType)>,
}

static KNOWN: PyOnceLock<Known> = PyOnceLock::new();

fn known(py: Python<'_>) -> PyResult<&Known> {
    KNOWN.get_or_try_init(py, || {
        let torch = py.import("torch")?;
        let dtypes = DTYPES
            .into_iter()
            .map(|(name, dtype)| Ok((torch.getattr(name)?.unbind(), dtype)))
            .collect::<PyResult<_>>()?;
        Ok(Known { strided: torch.getattr("strided")?.unbind(), dtypes })
    })
}

/// Element type of a tensor.
///
/// # Errors
///
/// `TypeError` for a type that no collective has.
pub(crate) fn dtype(what: &str, tensor: &Bound<'_, PyAny>) -> PyResult<DType> {
    let dtype = tensor.getattr(intern!(tensor.py(), "dtype"))?;
    match known(tensor.py())?.dtypes.iter().find(|(object, _)| object.is(&dtype)) {
        Some((_, dtype)) => Ok(*dtype),
        None => Err(PyTypeError::new_err(format!(
            "{what}: dtype {dtype}; supported are {}",
            DTYPES.map(|(name, _)| name).join(", ")
        ))),
    }
}

/// First element of a tensor.
///
/// # Errors
///
/// `TypeError` for a tensor that is not in the memory of the processor, [`NotDense`], and
/// [`Scattered`] for one whose elements do not lie in a row as they are to be read.
pub(crate) fn address(what: &str, tensor: &Bound<'_, PyAny>) -> PyResult<usize> {
    let py = tensor.py();
    if !tensor.getattr(intern!(py, "is_cpu"))?.is_truthy()? {
        let device = tensor.getattr(intern!(py, "device"))?;
        return Err(PyTypeError::new_err(format!(
            "{what}: tensor on {device}; this build of stepccl moves CPU tensors only"
        )));
    }
    let layout = tensor.getattr(intern!(py, "layout"))?;
    if !known(py)?.strided.is(&layout) {
        return Err(NotDense::new_err(format!(
            "{what}: tensor with layout {layout}; only all_reduce takes others than dense ones"
        )));
    }
    if !tensor.call_method0(intern!(py, "is_contiguous"))?.is_truthy()?
        || tensor.call_method0(intern!(py, "is_neg"))?.is_truthy()?
        || tensor.call_method0(intern!(py, "is_conj"))?.is_truthy()?
    {
        return Err(Scattered::new_err(format!("{what}: elements that do not lie in a row")));
    }
    tensor.call_method0(intern!(py, "data_ptr"))?.extract()
}

/// First elements of all tensors of a list.
///
/// # Errors
///
/// As [`address`].
pub(crate) fn addresses(what: &str, tensors: &Bound<'_, PyList>) -> PyResult<Vec<usize>> {
    tensors.iter().map(|tensor| address(what, &tensor)).collect()
}

/// Bytes of a tensor.
pub(crate) fn bytes(tensor: &Bound<'_, PyAny>) -> PyResult<usize> {
    tensor.getattr(intern!(tensor.py(), "nbytes"))?.extract()
}

/// The tensors of one operation.
pub(crate) struct Tensors<'a, 'py> {
    send: &'a Bound<'py, PyList>,
    recv: &'a Bound<'py, PyList>,
    /// First elements of `send`.
    pub input: Vec<usize>,
    /// First elements of `recv`.
    pub output: Vec<usize>,
}

impl<'a, 'py> Tensors<'a, 'py> {
    /// # Errors
    ///
    /// As [`address`].
    pub(crate) fn read(
        what: &str,
        send: &'a Bound<'py, PyList>,
        recv: &'a Bound<'py, PyList>,
    ) -> PyResult<Self> {
        let input = addresses(what, send)?;
        // In place: what is read is what is written.
        let output = if recv.is(send) { input.clone() } else { addresses(what, recv)? };
        Ok(Self { send, recv, input, output })
    }

    /// Element type; that of bytes where there are no tensors, as in a barrier.
    ///
    /// # Errors
    ///
    /// As [`dtype`].
    pub(crate) fn dtype(&self, what: &str) -> PyResult<DType> {
        match self.send.iter().chain(self.recv.iter()).next() {
            Some(tensor) => dtype(what, &tensor),
            None => Ok(DType::U8),
        }
    }

    pub(crate) fn py(&self) -> Python<'py> {
        self.send.py()
    }

    /// What keeps the memory alive.
    pub(crate) fn keep(&self) -> PyResult<Py<PyAny>> {
        Ok((self.send, self.recv).into_pyobject(self.send.py())?.into_any().unbind())
    }

    /// The lists, which keep the memory alive.
    pub(crate) fn lists(&self) -> [Py<PyAny>; 2] {
        [self.send, self.recv].map(|list| list.clone().into_any().unbind())
    }

    /// The memory of each tensor.
    pub(crate) fn spans(&self) -> PyResult<Vec<Span>> {
        let sides = [(self.send, &self.input, false), (self.recv, &self.output, true)];
        let mut spans = Vec::with_capacity(self.input.len() + self.output.len());
        for (list, addresses, written) in sides {
            for (tensor, start) in list.iter().zip(addresses) {
                spans.push(Span { bytes: *start..*start + bytes(&tensor)?, written });
            }
        }
        Ok(spans)
    }
}
