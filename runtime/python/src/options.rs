//! What an operation needs of c10d's options.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use stepccl::{Collective, ReduceOp};

use crate::work::seconds;

/// c10d's names of the reductions, and ours.
const OPS: [(&str, ReduceOp); 9] = [
    ("SUM", ReduceOp::Sum),
    ("PRODUCT", ReduceOp::Prod),
    ("MAX", ReduceOp::Max),
    ("MIN", ReduceOp::Min),
    ("AVG", ReduceOp::Avg),
    ("PREMUL_SUM", ReduceOp::PremulSum),
    ("BAND", ReduceOp::BitAnd),
    ("BOR", ReduceOp::BitOr),
    ("BXOR", ReduceOp::BitXor),
];

/// The numbers that this torch gives the reductions.
struct Numbers {
    known: [(i64, ReduceOp); OPS.len()],
    /// Whether the hash of a reduction is its number: it costs half of asking for it.
    hashed: bool,
}

static NUMBERS: PyOnceLock<Numbers> = PyOnceLock::new();

impl Numbers {
    fn of_torch(py: Python<'_>) -> PyResult<Self> {
        let class = py.import("torch.distributed")?.getattr("ReduceOp")?;
        let kinds = class.getattr("RedOpType")?;
        let mut known = [(0, ReduceOp::Sum); OPS.len()];
        let mut hashed = true;
        for (number, (name, op)) in known.iter_mut().zip(OPS) {
            let kind = kinds.getattr(name)?;
            *number = (kind.extract()?, op);
            // A factor is not made without its value.
            if op != ReduceOp::PremulSum {
                hashed &= class.call1((kind,))?.hash()? as i64 == number.0;
            }
        }
        Ok(Self { known, hashed })
    }

    fn find(&self, number: i64) -> Option<ReduceOp> {
        self.known.iter().find(|(known, _)| *known == number).map(|(_, op)| *op)
    }
}

/// How an operation is to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub op: ReduceOp,
    pub premul: f64,
    /// Whether the call is to return only when the operation is done.
    pub synchronous: bool,
    pub timeout: Option<Duration>,
}

impl Options {
    /// The options of `collective`; `timeout_s` counts where they have no limit.
    ///
    /// # Errors
    ///
    /// `NotSupportedError` for a reduction that there is not, `ValueError` for a bad limit or
    /// factor.
    pub(crate) fn read(
        collective: Collective,
        opts: &Bound<'_, PyAny>,
        timeout_s: f64,
    ) -> PyResult<Self> {
        let py = opts.py();
        let (op, premul) = if opts.is_none() || !reduces(collective) {
            (ReduceOp::Sum, 1.0)
        } else {
            reduction(collective.name(), &opts.getattr(intern!(py, "reduceOp"))?)?
        };
        let synchronous = !opts.is_none()
            && match opts.getattr_opt(intern!(py, "asyncOp"))? {
                Some(asynchronous) => !asynchronous.is_truthy()?,
                None => false,
            };
        Ok(Self { op, premul, synchronous, timeout: limit(opts, timeout_s)? })
    }
}

const fn reduces(collective: Collective) -> bool {
    matches!(
        collective,
        Collective::AllReduce | Collective::ReduceScatter | Collective::Reduce { .. }
    )
}

/// The limit of the options, or `timeout_s` where they say "the group's own": none, zero, negative.
fn limit(opts: &Bound<'_, PyAny>, timeout_s: f64) -> PyResult<Option<Duration>> {
    let py = opts.py();
    if !opts.is_none() {
        let timeout = opts.getattr(intern!(py, "timeout"))?;
        let own: f64 = timeout.call_method0(intern!(py, "total_seconds"))?.extract()?;
        if own > 0.0 {
            return seconds(Some(own));
        }
    }
    seconds(Some(timeout_s))
}

/// The reduction, and what it multiplies this rank's input by.
fn reduction(what: &str, given: &Bound<'_, PyAny>) -> PyResult<(ReduceOp, f64)> {
    let py = given.py();
    let numbers = NUMBERS.get_or_try_init(py, || Numbers::of_torch(py))?;
    if numbers.hashed
        && let Some(op) = numbers.find(given.hash()? as i64)
        && op != ReduceOp::PremulSum
    {
        return Ok((op, 1.0));
    }
    let kind = given.getattr_opt(intern!(py, "op"))?.unwrap_or_else(|| given.clone());
    let number: i64 = kind.extract()?;
    match numbers.find(number) {
        Some(ReduceOp::PremulSum) => Ok((ReduceOp::PremulSum, factor(what, given)?)),
        Some(op) => Ok((op, 1.0)),
        None => {
            let name = kind.getattr("name")?;
            let known = ReduceOp::ALL.map(|op| op.name().to_uppercase()).join(", ");
            let error = py.import("stepccl.errors")?.getattr("NotSupportedError")?;
            let text = format!("{what}: reduce op {name}; supported are {known}");
            Err(PyErr::from_value(error.call1((text,))?))
        }
    }
}

/// What a PREMUL_SUM multiplies by.
fn factor(what: &str, op: &Bound<'_, PyAny>) -> PyResult<f64> {
    let (_, value): (Py<PyAny>, Bound<'_, PyAny>) = op.call_method0("__getstate__")?.extract()?;
    if let Some(numel) = value.getattr_opt("numel")? {
        let elements: usize = numel.call0()?.extract()?;
        if elements != 1 {
            return Err(PyValueError::new_err(format!(
                "{what}: a factor of {elements} elements; it must be one number"
            )));
        }
    }
    value.extract()
}
