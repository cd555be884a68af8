//! Where the times of single calls lie.

/// Times of single calls in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Percentiles {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub min: f64,
    pub max: f64,
}

impl Percentiles {
    /// Those of `times`; `None` where there are none. A percentile is a time that was measured: the
    /// smallest with at least that part of all times up to it.
    pub fn of(mut times: Vec<f64>) -> Option<Self> {
        times.sort_by(f64::total_cmp);
        let (min, max) = (*times.first()?, *times.last()?);
        let at = |percent: usize| times[(times.len() * percent).div_ceil(100).max(1) - 1];
        Some(Self { p50: at(50), p90: at(90), p99: at(99), min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let all = Percentiles::of((1..=200).rev().map(f64::from).collect()).unwrap();
        let Percentiles { p50, p90, p99, min, max } = all;
        assert_eq!([p50, p90, p99, min, max], [100.0, 180.0, 198.0, 1.0, 200.0]);
        let one = Percentiles::of(vec![7.0]).unwrap();
        assert_eq!([one.p50, one.p99, one.max], [7.0; 3]);
        assert_eq!(Percentiles::of(Vec::new()), None);
    }
}
