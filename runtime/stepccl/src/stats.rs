//! What a communicator did, for people and programs that look.

use std::time::Duration;

use stepccl_engine::Counters;
use stepccl_plan::Figures;

/// Counters and facts of a communicator.
#[derive(Clone, Debug)]
pub struct Stats {
    /// Engine that moves the bytes.
    pub engine: &'static str,
    /// Time from the call to the communicator being ready, the other ranks' coming included.
    pub start_up: Duration,
    /// Operations started.
    pub operations: u64,
    /// Bytes of their messages on this rank.
    pub message_bytes: u64,
    /// Staging memory of this rank in bytes.
    pub staging_bytes: usize,
    /// Algorithms, and for how many sizes each was chosen.
    pub algorithms: Vec<(&'static str, u64)>,
    /// What the engine did.
    pub counters: Counters,
    /// Whether ranks read one another's memory, or why they do not.
    pub single_copy: String,
    /// Measured figures that the cost model works with.
    pub figures: Figures,
}
