//! Up to which size a collective goes through posts.

use std::sync::atomic::{AtomicUsize, Ordering};

use stepccl_plan::Collective;

/// Not known yet.
const UNKNOWN: usize = usize::MAX;

/// Longest block in bytes of each collective that is posted, found when one is first called. Read
/// without a lock: every short call asks.
#[derive(Debug)]
pub(crate) struct EagerLimits([AtomicUsize; Collective::ALL.len()]);

impl EagerLimits {
    pub const fn new() -> Self {
        Self([const { AtomicUsize::new(UNKNOWN) }; Collective::ALL.len()])
    }

    /// The limit of `collective`, from `find` where it is not known.
    #[inline]
    pub fn get(&self, collective: Collective, find: impl FnOnce() -> usize) -> usize {
        let limit = &self.0[place(collective)];
        match limit.load(Ordering::Relaxed) {
            UNKNOWN => {
                let found = find().min(UNKNOWN - 1);
                // Whoever else looks for it finds the same.
                limit.store(found, Ordering::Relaxed);
                found
            }
            known => known,
        }
    }
}

const fn place(collective: Collective) -> usize {
    match collective {
        Collective::AllReduce => 0,
        Collective::Broadcast { .. } => 1,
        Collective::Reduce { .. } => 2,
        Collective::AllGather => 3,
        Collective::ReduceScatter => 4,
        Collective::AllToAll => 5,
        Collective::Gather { .. } => 6,
        Collective::Scatter { .. } => 7,
        // What is added to the list gets a line of its own here.
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_collective_has_its_own_limit() {
        let limits = EagerLimits::new();
        for (collective, limit) in Collective::ALL.into_iter().zip(1..) {
            assert_eq!(limits.get(collective, || limit), limit);
            assert_eq!(limits.get(collective.with_root(3), || 99), limit);
        }
    }
}
