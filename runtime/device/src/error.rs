//! Why a ring was refused or given up.

use nix::errno::Errno;
use stepccl_memory::MemoryError;

use crate::Word;

/// Why a ring was refused or given up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RingError {
    /// A queue of an impossible size.
    #[error("{queue} queue of {entries} entries; a power of two from 1 to {limit} is needed")]
    BadEntries {
        /// Which queue.
        queue: &'static str,
        /// Entries asked for.
        entries: u32,
        /// Most entries.
        limit: u32,
    },
    /// Set-up returned an offset outside the mapping.
    #[error("{what} at offset {offset}: {bytes} bytes leave the mapping of {limit} bytes")]
    OffsetOutOfBounds {
        /// What should lie there.
        what: &'static str,
        /// Offset in bytes.
        offset: u32,
        /// Bytes it takes.
        bytes: u64,
        /// Length of the mapping.
        limit: u64,
    },
    /// Set-up returned an offset that is not aligned.
    #[error("{what} at offset {offset}: must be a multiple of {align}")]
    OffsetMisaligned {
        /// What should lie there.
        what: &'static str,
        /// Offset in bytes.
        offset: u32,
        /// What it should be a multiple of.
        align: u32,
    },
    /// Set-up put two things in one place.
    #[error("{first} at offset {first_offset} and {second} at offset {second_offset} overlap")]
    OffsetsOverlap {
        /// One of them.
        first: &'static str,
        /// Its offset in bytes.
        first_offset: u32,
        /// The other.
        second: &'static str,
        /// Its offset in bytes.
        second_offset: u32,
    },
    /// The other side moved an index to where it cannot be.
    #[error(
        "{word} is {found} where {from} to {to} are possible; the other side broke the ring, \
         give it up"
    )]
    BadIndex {
        /// Which index.
        word: Word,
        /// What was found.
        found: u32,
        /// Least value possible; indices wrap at 2^32.
        from: u32,
        /// Greatest value possible.
        to: u32,
    },
    /// There are more completions than operations.
    #[error("a completion for user data {user_data:#x} came when no operation was under way")]
    UnexpectedCompletion {
        /// What it carries.
        user_data: u64,
    },
    /// A completion was posted for nothing.
    #[error("user data {user_data:#x} completes, but every entry taken has completed already")]
    NothingInFlight {
        /// What it carries.
        user_data: u64,
    },
    /// The service has given the ring up.
    #[error("the ring has failed and takes nothing any more; set up a new one")]
    Failed,
    /// The system refused a call.
    #[error("{call}: {errno}")]
    System {
        /// Which call.
        call: &'static str,
        /// What the system said.
        errno: Errno,
    },
    /// The memory of the ring was refused.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}
