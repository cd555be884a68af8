//! What a rank says when it joins.

use std::time::{Duration, Instant};

use crate::{BootstrapError, Network, Secret};

/// Most ranks of a communicator.
pub const MAX_RANKS: u32 = 4096;

/// Longest [`JoinConfig::note`] in bytes.
pub const MAX_NOTE_BYTES: usize = 4096;

/// Longest [`JoinConfig::name`] in bytes.
pub const MAX_NAME_BYTES: usize = 256;

/// Longest [`JoinConfig::timeout`].
const MAX_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3600);

/// What a rank says when it joins.
#[derive(Clone, Debug)]
pub struct JoinConfig {
    /// Name of the communicator, the same on all ranks and never used before on this store: append
    /// a generation to make a communicator again. 1 to [`MAX_NAME_BYTES`] printable ASCII
    /// characters.
    pub name: String,
    /// This rank, below `ranks`.
    pub rank: u32,
    /// How many ranks there are, 1 to [`MAX_RANKS`].
    pub ranks: u32,
    /// The job's secret: given to all ranks or to none. Without one, rank 0 makes one and leaves
    /// it in the store.
    pub secret: Option<Secret>,
    /// How long the whole of `join` may take.
    pub timeout: Duration,
    /// Facts of this rank that the others shall know, at most [`MAX_NOTE_BYTES`] bytes.
    pub note: Vec<u8>,
    /// How ranks of other nodes are reached.
    pub network: Network,
}

impl JoinConfig {
    /// Check every field and turn the timeout into a deadline.
    pub(crate) fn check(&self) -> Result<Instant, BootstrapError> {
        let bad = |what: String| Err(BootstrapError::Argument { what });
        if self.name.is_empty()
            || self.name.len() > MAX_NAME_BYTES
            || !self.name.bytes().all(|b| b.is_ascii_graphic())
        {
            return bad(format!(
                "communicator name {:?}: 1 to {MAX_NAME_BYTES} printable ASCII characters without \
                 spaces are needed",
                crate::wire::printable(self.name.as_bytes(), 64),
            ));
        }
        if self.ranks == 0 || self.ranks > MAX_RANKS {
            return bad(format!("{} ranks: 1 to {MAX_RANKS} are possible", self.ranks));
        }
        if self.rank >= self.ranks {
            return bad(format!("rank {}: ranks are 0 to {}", self.rank, self.ranks - 1));
        }
        if self.note.len() > MAX_NOTE_BYTES {
            let bytes = self.note.len();
            return bad(format!("a note of {bytes} bytes: at most {MAX_NOTE_BYTES} are possible"));
        }
        if self.timeout.is_zero() || self.timeout > MAX_TIMEOUT {
            return bad(format!(
                "a timeout of {:?}: more than zero and at most {MAX_TIMEOUT:?} are possible",
                self.timeout,
            ));
        }
        Ok(Instant::now() + self.timeout)
    }
}
