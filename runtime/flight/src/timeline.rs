//! Ticks of a record as times. Arithmetic only.

use crate::Moment;
use crate::clock::ClockKind;

/// Turns ticks into times by two moments: that of the record's making, and that of reading.
#[derive(Clone, Copy, Debug)]
pub struct Timeline {
    now: Moment,
    ns_per_tick: f64,
}

/// A counter of a machine runs at more than this many ticks a second and fewer than the other.
const RATES: [f64; 2] = [1e6, 2e10];

impl Timeline {
    /// From the moment in the header and the present one, both of `kind`. None where they do not
    /// fit together: clocks of another machine, or nonsense.
    #[must_use]
    pub fn new(kind: ClockKind, made: &Moment, now: &Moment) -> Option<Self> {
        let ns = now.monotonic_ns.checked_sub(made.monotonic_ns)?;
        let ticks = now.ticks.checked_sub(made.ticks)?;
        if kind == ClockKind::Monotonic {
            return Some(Self { now: *now, ns_per_tick: 1.0 });
        }
        if ticks == 0 {
            return None;
        }
        let ns_per_tick = ns as f64 / ticks as f64;
        let rate = 1e9 / ns_per_tick;
        (rate > RATES[0] && rate < RATES[1]).then_some(Self { now: *now, ns_per_tick })
    }

    /// Nanoseconds from `ticks` to the moment of reading; 0 for later ones.
    #[must_use]
    pub fn ago_ns(&self, ticks: u64) -> u64 {
        self.span_ns(ticks, self.now.ticks)
    }

    /// Nanoseconds between two counts; 0 where the second is earlier.
    #[must_use]
    pub fn span_ns(&self, from: u64, to: u64) -> u64 {
        // Saturates; ticks below 2^53 are exact, which are years of a counter of 3 GHz.
        (to.saturating_sub(from) as f64 * self.ns_per_tick).round() as u64
    }

    /// `CLOCK_REALTIME` in nanoseconds at `ticks`.
    #[must_use]
    pub fn realtime_ns(&self, ticks: u64) -> u64 {
        if ticks > self.now.ticks {
            return self.now.realtime_ns.saturating_add(self.span_ns(self.now.ticks, ticks));
        }
        self.now.realtime_ns.saturating_sub(self.ago_ns(ticks))
    }

    /// The moment of reading.
    #[must_use]
    pub const fn now(&self) -> &Moment {
        &self.now
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn moment(ticks: u64, ns: u64) -> Moment {
        Moment { ticks, monotonic_ns: ns, realtime_ns: 1_000_000_000_000 + ns }
    }

    #[test]
    fn a_counter_of_two_gigahertz_is_found() {
        let line =
            Timeline::new(ClockKind::Tsc, &moment(1000, 0), &moment(2_000_001_000, 1_000_000_000))
                .unwrap();
        assert_eq!(line.ago_ns(1000), 1_000_000_000);
        assert_eq!(line.ago_ns(2_000_000_000), 500);
        assert_eq!(line.realtime_ns(1000), 1_000_000_000_000);
        assert_eq!(line.realtime_ns(2_000_003_000), 1_001_000_001_000);
    }

    #[test]
    fn clocks_that_do_not_fit_are_refused() {
        let kind = ClockKind::Tsc;
        assert!(Timeline::new(kind, &moment(5, 5), &moment(5, 9)).is_none());
        assert!(Timeline::new(kind, &moment(9, 5), &moment(5, 9)).is_none());
        assert!(Timeline::new(kind, &moment(5, 9), &moment(9, 5)).is_none());
        // A counter of 1 kHz is none.
        assert!(Timeline::new(kind, &moment(0, 0), &moment(1000, 1_000_000_000)).is_none());
    }

    proptest! {
        #[test]
        fn no_value_overflows(made: [u64; 3], now: [u64; 3], ticks: u64, to: u64) {
            let of = |[ticks, monotonic_ns, realtime_ns]: [u64; 3]| Moment { ticks, monotonic_ns, realtime_ns };
            for kind in [ClockKind::Tsc, ClockKind::Monotonic] {
                if let Some(line) = Timeline::new(kind, &of(made), &of(now)) {
                    prop_assert!(line.realtime_ns(ticks) >= line.now().realtime_ns || ticks <= line.now().ticks);
                    prop_assert_eq!(line.ago_ns(ticks), line.span_ns(ticks, line.now().ticks));
                    prop_assert!(to > ticks || line.span_ns(ticks, to) == 0);
                }
            }
        }
    }
}
