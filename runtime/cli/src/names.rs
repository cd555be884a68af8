//! Values of arguments, from the names people write.

use std::time::Duration;

use stepccl::{Algorithm, Collective, DType, ReduceOp, parse_size};

use crate::listed::Listed;

/// Longest timeout: some eleven days. Far more, and the clock would overflow.
const MOST_SECONDS: f64 = 1e6;

/// One value, or all there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selection<T>(pub Vec<T>);

/// Reads a collective.
pub(crate) fn listed_collectives() -> Listed<Collective> {
    Listed::new(collective, Collective::ALL.map(Collective::name))
}

/// Reads an element type.
pub(crate) fn listed_dtype() -> Listed<DType> {
    Listed::new(dtype, DType::ALL.map(DType::name))
}

/// Reads an element type, or `all`.
pub(crate) fn listed_dtypes() -> Listed<Selection<DType>> {
    Listed::new(dtypes, DType::ALL.map(DType::name).into_iter().chain(["all"]))
}

/// Reads how elements are combined, or `all`.
pub(crate) fn listed_ops() -> Listed<Selection<ReduceOp>> {
    Listed::new(ops, ReduceOp::ALL.map(ReduceOp::name).into_iter().chain(["all"]))
}

/// Reads an algorithm.
pub(crate) fn listed_algorithms() -> Listed<Algorithm> {
    Listed::new(algorithm, Algorithm::ALL.map(Algorithm::name))
}

pub(crate) fn collective(name: &str) -> Result<Collective, String> {
    let plain = name.to_ascii_lowercase().replace('-', "_");
    // nccl-tests writes its programs without underscores.
    Collective::ALL
        .into_iter()
        .find(|c| c.name() == plain || c.name().replace('_', "") == plain)
        .ok_or_else(|| one_of(Collective::ALL.map(Collective::name)))
}

fn dtype(name: &str) -> Result<DType, String> {
    DType::ALL
        .into_iter()
        .find(|d| d.name() == name)
        .ok_or_else(|| one_of(DType::ALL.map(DType::name)))
}

fn dtypes(name: &str) -> Result<Selection<DType>, String> {
    if name == "all" {
        return Ok(Selection(DType::ALL.to_vec()));
    }
    dtype(name).map(|d| Selection(vec![d])).map_err(|rule| rule + ", all")
}

fn ops(name: &str) -> Result<Selection<ReduceOp>, String> {
    if name == "all" {
        return Ok(Selection(ReduceOp::ALL.to_vec()));
    }
    ReduceOp::ALL
        .into_iter()
        .find(|o| o.name() == name)
        .map(|o| Selection(vec![o]))
        .ok_or_else(|| one_of(ReduceOp::ALL.map(ReduceOp::name)) + ", all")
}

fn algorithm(name: &str) -> Result<Algorithm, String> {
    name.parse().map_err(|_| one_of(Algorithm::ALL.map(Algorithm::name)))
}

pub(crate) fn bytes(text: &str) -> Result<usize, String> {
    let number = text.strip_suffix(['T', 't']);
    let parsed = match number {
        Some(number) => number.parse().ok().and_then(|n: usize| n.checked_mul(1 << 40)),
        None => parse_size("size", text).ok(),
    };
    parsed.ok_or_else(|| {
        "must be a whole number of bytes below 2^64, alone or with K, M, G or T, as 64K".to_owned()
    })
}

pub(crate) fn factor(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(factor) if factor >= 2 => Ok(factor),
        _ => Err("must be a whole number, at least 2".to_owned()),
    }
}

pub(crate) fn step(text: &str) -> Result<usize, String> {
    match bytes(text)? {
        0 => Err("must be at least 1 byte".to_owned()),
        step => Ok(step),
    }
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .filter(|seconds| *seconds > 0.0 && *seconds <= MOST_SECONDS)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| format!("must be a number of seconds, above 0 and at most {MOST_SECONDS}"))
}

fn one_of<const N: usize>(names: [&'static str; N]) -> String {
    format!("must be one of {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_library_and_of_nccl_tests() {
        for name in ["all_reduce", "all-reduce", "allreduce", "ALL_REDUCE"] {
            assert_eq!(collective(name), Ok(Collective::AllReduce), "{name}");
        }
        assert_eq!(collective("alltoall"), Ok(Collective::AllToAll));
        assert_eq!(dtypes("all").unwrap().0, DType::ALL);
        assert_eq!(ops("avg").unwrap().0, [ReduceOp::Avg]);
    }

    #[test]
    fn sizes_go_up_to_tebibytes() {
        assert_eq!(bytes("1T"), Ok(1 << 40));
        assert_eq!(bytes("64K"), Ok(64 << 10));
        for text in ["", "T", "-1", "-1K", "1.5M", "1Q", "99999999T", "99999999999999999999"] {
            assert!(bytes(text).unwrap_err().contains("64K"), "{text}");
        }
    }

    #[test]
    fn seconds_are_positive_and_not_absurd() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["0", "-1", "nan", "inf", "1e300", "1e-20", "2000000", "x", ""] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
