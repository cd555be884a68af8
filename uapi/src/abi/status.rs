//! Errors of an operation, as positive errno, and the static rules behind them.
//!
//! The numbers are those of `asm-generic/errno.h`, which x86 and arm use.

/// No such region id.
pub const ENOENT: i32 = 2;
/// The channel reported an error.
pub const EIO: i32 = 5;
/// No memory to start the operation.
pub const ENOMEM: i32 = 12;
/// The region lacks the right.
pub const EACCES: i32 = 13;
/// The channel went away.
pub const ENODEV: i32 = 19;
/// A static rule is broken.
pub const EINVAL: i32 = 22;
/// The range leaves its region.
pub const ERANGE: i32 = 34;
/// Unknown opcode or flag, or no path that the flags allow.
pub const EOPNOTSUPP: i32 = 95;
/// The channel did not answer in time.
pub const ETIMEDOUT: i32 = 110;
/// No way to the node.
pub const EHOSTUNREACH: i32 = 113;
/// The owner of an import took it away.
pub const ESTALE: i32 = 116;
/// The exporter of a dma-buf took it away.
pub const EREMOTEIO: i32 = 121;
/// An earlier entry of the chain failed, or the file was closed.
pub const ECANCELED: i32 = 125;

/// A rule for entries that needs no table of regions to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryRule {
    /// A reserved byte is not zero.
    ReservedNotZero,
    /// A field that this opcode or these flags do not use is not zero.
    UnusedNotZero,
    /// A flag is not known.
    UnknownFlag,
    /// Two flags exclude one another.
    FlagsExclude,
    /// The address of the signal is not a multiple of 8.
    SignalMisaligned,
    /// The opcode is 0.
    NoOpcode,
    /// The opcode is not known.
    UnknownOpcode,
    /// The length is 0.
    NoLength,
    /// The end that must be on this node is not.
    WrongNode,
    /// Source and destination overlap within a region.
    Overlap,
}

impl EntryRule {
    /// Positive errno for the completion.
    #[must_use]
    pub const fn errno(self) -> i32 {
        match self {
            Self::UnknownFlag | Self::UnknownOpcode => EOPNOTSUPP,
            _ => EINVAL,
        }
    }
}
