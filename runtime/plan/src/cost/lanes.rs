//! Times for several page sizes at once.

use crate::{GRAIN_BYTES, Span, Step};

/// Page sizes that are timed together.
pub(super) const LANES: usize = 8;

/// A time in nanoseconds for each page size.
pub(super) type Times = [f64; LANES];

/// Page sizes, and how parts cut them.
pub(super) struct Pages {
    bytes: Times,
    /// Bytes of a part that is not cut short by the end of the page.
    even: Times,
}

impl Pages {
    pub fn new(bytes: &[u64; LANES], parts: u32) -> Self {
        let parts = u64::from(parts);
        let even = bytes.map(|b| b.div_ceil(parts).next_multiple_of(GRAIN_BYTES as u64) as f64);
        Self { bytes: bytes.map(|b| b as f64), even }
    }

    /// Bytes of the span a step works on; zero for signals and waits.
    pub fn bytes_of(&self, step: &Step) -> Times {
        let (Step::Copy { dst, .. } | Step::Reduce { dst, .. }) = step else {
            return [0.0; LANES];
        };
        let Span { first, count, .. } = *dst;
        let (first, end) = (f64::from(first), f64::from(first + count));
        let mut bytes = [0.0; LANES];
        for (lane, bytes) in bytes.iter_mut().enumerate() {
            let (all, even) = (self.bytes[lane], self.even[lane]);
            *bytes = (end * even).min(all) - (first * even).min(all);
        }
        bytes
    }
}
