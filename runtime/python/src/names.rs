//! Names as the Python package writes them.

use pyo3::PyResult;
use pyo3::exceptions::PyValueError;
use stepccl::{Collective, DType, ReduceOp, Uneven};

/// torch's names of the element types.
pub(crate) const DTYPES: [(&str, DType); DType::ALL.len()] = [
    ("float32", DType::F32),
    ("float64", DType::F64),
    ("float16", DType::F16),
    ("bfloat16", DType::Bf16),
    ("float8_e4m3fn", DType::F8E4M3),
    ("float8_e5m2", DType::F8E5M2),
    ("int8", DType::I8),
    ("uint8", DType::U8),
    ("int32", DType::I32),
    ("uint32", DType::U32),
    ("int64", DType::I64),
    ("uint64", DType::U64),
    ("bool", DType::Bool),
    ("complex64", DType::C64),
    ("complex128", DType::C128),
];

fn unknown<T>(what: &str, name: &str, known: &[&str]) -> PyResult<T> {
    Err(PyValueError::new_err(format!("{what} = {name:?}: must be one of {}", known.join(", "))))
}

pub(crate) fn dtype(name: &str) -> PyResult<DType> {
    match DTYPES.iter().find(|(n, _)| *n == name) {
        Some((_, dtype)) => Ok(*dtype),
        None => unknown("dtype", name, &DTYPES.map(|(n, _)| n)),
    }
}

pub(crate) fn op(name: &str) -> PyResult<ReduceOp> {
    match ReduceOp::ALL.into_iter().find(|op| op.name() == name) {
        Some(op) => Ok(op),
        None => unknown("op", name, &ReduceOp::ALL.map(ReduceOp::name)),
    }
}

pub(crate) fn collective(name: &str, root: u32) -> PyResult<Collective> {
    match Collective::from_name(name) {
        Some(collective) => Ok(collective.with_root(root)),
        None => unknown("collective", name, &Collective::ALL.map(Collective::name)),
    }
}

pub(crate) fn uneven(name: &str, send: Vec<usize>, receive: Vec<usize>) -> PyResult<Uneven> {
    match name {
        "all_gather" => Ok(Uneven::AllGather { counts: receive.into() }),
        "reduce_scatter" => Ok(Uneven::ReduceScatter { counts: send.into() }),
        "all_to_all" => Ok(Uneven::AllToAll { send: send.into(), receive: receive.into() }),
        _ => unknown("collective", name, &["all_gather", "reduce_scatter", "all_to_all"]),
    }
}
