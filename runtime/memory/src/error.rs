//! Why memory was refused.

use nix::errno::Errno;

/// Why a segment or a piece of it was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The range leaves the memory.
    #[error("{bytes} bytes at offset {offset} leave the {limit} bytes that are there")]
    OutOfBounds {
        /// First byte of the range.
        offset: usize,
        /// Length of the range.
        bytes: usize,
        /// Length of the memory.
        limit: usize,
    },
    /// A word is not aligned to its size.
    #[error("offset {offset}: a word of {align} bytes must lie on a multiple of {align}")]
    Misaligned {
        /// Offset asked for.
        offset: usize,
        /// What its address should be a multiple of.
        align: usize,
    },
    /// A segment of no bytes, or of more than a file can have.
    #[error("a segment of {bytes} bytes; 1 to {limit} are possible")]
    BadSize {
        /// Length asked for.
        bytes: usize,
        /// Largest length.
        limit: usize,
    },
    /// The file that a peer passed is not as long as agreed.
    #[error("the peer's segment has {found} bytes where {expected} were agreed")]
    WrongSize {
        /// Length agreed.
        expected: usize,
        /// Length found.
        found: u64,
    },
    /// The file that a peer passed may still shrink, so touching it could kill this process.
    #[error("the peer's segment lacks the seal {missing}; it could shrink under this process")]
    Unsealed {
        /// Name of the first seal that lacks.
        missing: &'static str,
    },
    /// The file that a peer passed is not a memfd of ordinary pages.
    #[error("the peer's segment is not a memfd of ordinary pages")]
    NotMemfd,
    /// The system refused.
    #[error("{call}: {errno}")]
    System {
        /// Call that failed.
        call: &'static str,
        /// What the system said.
        errno: Errno,
    },
}

impl MemoryError {
    /// For `map_err`: the refusal of `call`.
    pub(crate) fn system(call: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self::System { call, errno }
    }

    /// For `map_err`: the refusal of `call`, as the standard library tells it.
    pub(crate) fn io(call: &'static str) -> impl Fn(std::io::Error) -> Self {
        move |error| Self::System {
            call,
            errno: Errno::from_raw(error.raw_os_error().unwrap_or(nix::libc::EIO)),
        }
    }
}
