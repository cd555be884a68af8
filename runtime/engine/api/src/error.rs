//! Why an engine refused.

use stepccl_plan::{DType, ReduceOp};

use crate::{Address, Board};

/// Why an engine refused or lost an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The region of an address is not registered.
    #[error("address {address}: region {region} is not registered", region = address.region())]
    UnknownRegion {
        /// The address.
        address: Address,
    },
    /// The range leaves its region.
    #[error("address {address}: {bytes} bytes leave the region of {region_bytes} bytes")]
    OutOfBounds {
        /// First byte of the range.
        address: Address,
        /// Length of the range.
        bytes: u64,
        /// Length of the region.
        region_bytes: u64,
    },
    /// The region may only be read.
    #[error("address {address}: the region may only be read")]
    ReadOnly {
        /// The address.
        address: Address,
    },
    /// Source and destination overlap.
    #[error("{bytes} bytes at {src} and {dst} overlap")]
    Overlap {
        /// Source.
        src: Address,
        /// Destination.
        dst: Address,
        /// Length.
        bytes: u64,
    },
    /// A null region, or one past 2^40 bytes.
    #[error("a region of {bytes} bytes at {base:#x}: null or larger than 2^40 bytes")]
    BadRegion {
        /// First byte.
        base: usize,
        /// Length.
        bytes: u64,
    },
    /// No region id is free.
    #[error("all {limit} regions are in use; unregister some")]
    TooManyRegions {
        /// How many there are.
        limit: u32,
    },
    /// An operation in progress uses the region.
    #[error("region {region} is used by an operation in progress")]
    RegionBusy {
        /// The region.
        region: u32,
    },
    /// A flag that no rank has.
    #[error("flag {flag} of rank {rank}: there are {flags} flags")]
    UnknownFlag {
        /// Rank asked for.
        rank: u32,
        /// Flag asked for.
        flag: u32,
        /// Flags a rank has.
        flags: u32,
    },
    /// Memory of a peer's process could not be read or written.
    #[error("{bytes} bytes at {address:#x} of rank {rank}: {message}")]
    PeerMemory {
        /// Whose memory it is.
        rank: u32,
        /// Address in its process.
        address: u64,
        /// Bytes asked for.
        bytes: u64,
        /// What the system said.
        message: String,
    },
    /// There is no such board, or its posts are too short.
    #[error("post {number} of {bytes} bytes on board {board:?}: {limit} bytes are possible")]
    NoPost {
        /// Which board.
        board: Board,
        /// Which post.
        number: u64,
        /// Bytes asked for.
        bytes: usize,
        /// Bytes a post has; 0 where there is no such board.
        limit: usize,
    },
    /// A reduce with no source or too many.
    #[error("a reduce of {sources} sources; 1 to {limit} are possible")]
    BadSources {
        /// Sources given.
        sources: usize,
        /// Most possible.
        limit: u32,
    },
    /// An operation that the type does not have.
    #[error("{op} of {dtype}: there is no such combination")]
    NotCombinable {
        /// Operation of a reduce.
        op: ReduceOp,
        /// Type of its elements.
        dtype: DType,
    },
    /// The other side of a ring or of shared memory broke its protocol.
    #[error("{what}: {detail}")]
    Protocol {
        /// Which structure.
        what: &'static str,
        /// What was found there.
        detail: String,
    },
    /// The system refused.
    #[error("{call}: {message}")]
    System {
        /// Call that failed.
        call: &'static str,
        /// What the system said.
        message: String,
    },
    /// A rank that the operation needs cannot be reached any more.
    #[error("rank {rank}: {detail}")]
    Lost {
        /// The rank.
        rank: u32,
        /// What is known of it.
        detail: String,
    },
    /// The operation came back with an error.
    #[error("the operation failed with errno {errno}")]
    Failed {
        /// Positive errno.
        errno: i32,
    },
}
