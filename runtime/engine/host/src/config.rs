//! What a host engine is made of.

use std::os::fd::OwnedFd;

use stepccl_engine::BoardShape;
use stepccl_memory::Segment;

use crate::HostError;
use crate::layout::{Boards, Layout};

/// Most ranks of one engine.
pub const MAX_RANKS: u32 = 4096;
/// Most channels of one engine.
pub const MAX_CHANNELS: u32 = 64;
/// Copies at least this long go to a channel, where there are any, unless configured otherwise.
pub const DEFAULT_CHANNEL_MIN_BYTES: u64 = 64 << 10;

/// Shape of a host engine. All but `rank` must be the same for every rank, channels excepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// This rank.
    pub rank: u32,
    /// Ranks of the communicator, this one included; at most [`MAX_RANKS`].
    pub ranks: u32,
    /// Flags of a rank; at most 65,536.
    pub flags: u32,
    /// Board for short messages of collectives; no posts: there is none.
    pub board: BoardShape,
    /// Board for short messages to each peer, likewise.
    pub pair_board: BoardShape,
    /// Staging of a rank in bytes; at most 2^32.
    pub staging_bytes: u64,
    /// Worker threads that copy beside the calling thread; at most [`MAX_CHANNELS`]. With 0,
    /// every operation is done when submitted.
    pub channels: u32,
    /// Copies of at least this many bytes go to a channel.
    pub channel_min_bytes: u64,
}

impl HostConfig {
    /// A rank of `ranks` with 64 flags, boards of 8 short posts, 1 MiB of staging and no channels.
    #[must_use]
    pub const fn new(rank: u32, ranks: u32) -> Self {
        Self {
            rank,
            ranks,
            flags: 64,
            board: BoardShape { posts: 8, bytes: 4096 - 24 },
            pair_board: BoardShape { posts: 8, bytes: 128 - 24 },
            staging_bytes: 1 << 20,
            channels: 0,
            channel_min_bytes: DEFAULT_CHANNEL_MIN_BYTES,
        }
    }

    /// Length of every rank's segment in bytes, which a peer's must have.
    ///
    /// # Errors
    ///
    /// [`HostError`] names the value that is out of range.
    pub fn segment_bytes(&self) -> Result<usize, HostError> {
        self.layout().map(Layout::segment_bytes)
    }

    /// Check all values.
    pub(crate) fn layout(&self) -> Result<Layout, HostError> {
        let Self { rank, ranks, .. } = *self;
        if ranks > MAX_RANKS || rank >= ranks {
            return Err(HostError::BadRank { rank, ranks, limit: MAX_RANKS });
        }
        if self.channels > MAX_CHANNELS {
            return Err(HostError::TooManyChannels {
                channels: self.channels,
                limit: MAX_CHANNELS,
            });
        }
        let boards = Boards { collective: self.board, pair: self.pair_board };
        Layout::new(ranks, self.flags, boards, self.staging_bytes)
    }
}

/// A peer, as start-up found it.
#[derive(Debug)]
pub struct PeerLink {
    /// Its rank.
    pub rank: u32,
    /// Its process id as that process sees it.
    pub pid: u32,
    /// Its segment.
    pub segment: Segment,
    /// Connected Unix socket whose hang-up says that the process is gone. None for a thread of
    /// this process, which cannot die alone.
    pub socket: Option<OwnedFd>,
}
