//! Words of a rank's segment by which ranks sleep, wake one another and give up.

use std::time::Duration;

use stepccl_memory::MemoryError;

/// These words of one rank, over any memory.
pub trait LaneWords {
    /// Whether the rank sleeps or is about to; ordered with nothing.
    fn is_sleeping(&self) -> bool;

    /// Say whether the rank sleeps; ordered with nothing.
    fn set_sleeping(&self, sleeping: bool);

    /// Value of the doorbell; what was done before a ring is visible with its value.
    fn doorbell(&self) -> u32;

    /// Move the doorbell, after everything that this thread did before.
    fn move_doorbell(&self);

    /// Wake the rank, if it sleeps on its doorbell.
    ///
    /// # Errors
    ///
    /// The system refused to wake.
    fn wake(&self) -> Result<(), MemoryError>;

    /// Sleep while the doorbell is `seen`, at most `limit`. May return early.
    ///
    /// # Errors
    ///
    /// The system refused to wait.
    fn wait(&self, seen: u32, limit: Duration) -> Result<(), MemoryError>;

    /// What became of the rank; what it did before it said so is visible.
    fn state(&self) -> u64;

    /// Say what became of the rank, after everything that this thread did before.
    fn set_state(&self, state: u64);

    /// 1 and the rank whose memory the rank writes, or 0; its writes before are visible.
    fn pushing(&self) -> u64;

    /// The rank is about to write memory of a rank; ordered with nothing.
    fn begin_push(&self, pushing: u64);

    /// The rank writes none any more, after its writes.
    fn end_push(&self);

    /// Order everything before against everything after, with all other such fences.
    fn fence(&self);
}
