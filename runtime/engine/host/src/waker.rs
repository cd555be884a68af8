//! Ends a park from another thread.

use stepccl_engine::Wake;

use crate::lane::Lane;
use crate::sleep;

/// Handle on the doorbell of one rank; keeps its segment mapped.
#[derive(Debug)]
pub(crate) struct HostWaker {
    own: Lane,
}

impl HostWaker {
    /// Waker of the rank whose lane this is.
    pub(crate) const fn new(own: Lane) -> Self {
        Self { own }
    }
}

impl Wake for HostWaker {
    fn wake(&self) {
        // The doorbell has moved when this fails, so only a sleep in progress goes on, and that
        // has a limit. The system refuses a wake only for words that do not exist.
        let _ = sleep::nudge(&self.own);
    }
}
