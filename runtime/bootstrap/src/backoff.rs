//! Pauses between two looks at something that does not wake its waiters.

use std::time::{Duration, Instant};

/// Growing pauses: short at first, because most ranks arrive together.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    most: Duration,
}

impl Backoff {
    /// Pauses that begin at `first` and grow by half up to `most`.
    pub(crate) const fn new(first: Duration, most: Duration) -> Self {
        Self { next: first, most }
    }

    /// The pauses between two looks at a store.
    pub(crate) const fn store() -> Self {
        Self::new(Duration::from_micros(50), Duration::from_millis(5))
    }

    /// Length of the next pause.
    pub(crate) fn step(&mut self) -> Duration {
        let now = self.next;
        self.next = (now + now / 2).min(self.most);
        now
    }

    /// Sleep for the next pause, no longer than to `deadline`; `false` where it is over already.
    pub(crate) fn sleep_until(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        std::thread::sleep(self.step().min(left));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_to_its_limit_and_stops_at_the_deadline() {
        let mut backoff = Backoff::new(Duration::from_micros(10), Duration::from_micros(20));
        let steps: Vec<_> = (0..4).map(|_| backoff.step().as_micros()).collect();
        assert_eq!(steps, [10, 15, 20, 20]);
        assert!(!backoff.sleep_until(Instant::now()));
    }
}
