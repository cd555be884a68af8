//! Why a host engine could not be made.

use stepccl_memory::MemoryError;

/// Why a host engine could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// A rank outside the communicator, or more ranks than possible.
    #[error("rank {rank} of {ranks}: a rank is below the number of ranks, which is 1 to {limit}")]
    BadRank {
        /// Rank given.
        rank: u32,
        /// Ranks given.
        ranks: u32,
        /// Most ranks.
        limit: u32,
    },
    /// More flags than possible.
    #[error("{flags} flags a rank; at most {limit} are possible")]
    TooManyFlags {
        /// Flags asked for.
        flags: u32,
        /// Most flags.
        limit: u32,
    },
    /// More channels than possible.
    #[error("{channels} channels; at most {limit} are possible")]
    TooManyChannels {
        /// Channels asked for.
        channels: u32,
        /// Most channels.
        limit: u32,
    },
    /// More staging than is sensible.
    #[error("{staging_bytes} bytes of staging a rank; at most {limit} are possible")]
    StagingTooLong {
        /// Bytes asked for.
        staging_bytes: u64,
        /// Most bytes.
        limit: u64,
    },
    /// A board that cannot be.
    #[error(
        "a board of {posts} posts of {bytes} bytes: posts are a power of two up to {limit}, and \
         all boards of a rank together at most {limit_bytes} bytes"
    )]
    BadBoard {
        /// Posts asked for.
        posts: u32,
        /// Bytes of a post asked for.
        bytes: usize,
        /// Most posts.
        limit: u32,
        /// Most bytes of all boards.
        limit_bytes: usize,
    },
    /// A peer's link is missing, is there twice, or is that of this rank.
    #[error("rank {rank} has {links} links of {ranks} ranks; every other rank needs exactly one")]
    BadLinks {
        /// Rank whose links are wrong.
        rank: u32,
        /// Links it has.
        links: usize,
        /// Ranks of the communicator.
        ranks: u32,
    },
    /// A rank's segment does not say what it should.
    #[error(
        "segment of rank {rank}: {field} is {found} where this rank has {expected}; \
         start all ranks with the same version and settings"
    )]
    Header {
        /// Rank whose segment it is.
        rank: u32,
        /// What differs.
        field: &'static str,
        /// Value expected.
        expected: u64,
        /// Value found.
        found: u64,
    },
    /// A segment could not be made or used.
    #[error("segment of rank {rank}: {source}")]
    Memory {
        /// Rank whose segment it is.
        rank: u32,
        /// Why.
        source: MemoryError,
    },
    /// A worker thread could not be started.
    #[error("channel {channel}: {message}; ask for fewer channels")]
    Channel {
        /// Which channel.
        channel: u32,
        /// What the system said.
        message: String,
    },
}
