//! Why a store did not answer.

use std::time::Duration;

use super::{MAX_KEY_BYTES, MAX_VALUE_BYTES};

/// Why a store did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The key is empty or too long.
    #[error("a key of {bytes} bytes: 1 to {MAX_KEY_BYTES} are possible")]
    Key {
        /// Its length.
        bytes: usize,
    },
    /// The value is too long.
    #[error("key {key:?}: a value of {bytes} bytes: at most {MAX_VALUE_BYTES} are possible")]
    Value {
        /// Key.
        key: String,
        /// Length of the value.
        bytes: usize,
    },
    /// The key did not come in time.
    #[error("key {key:?} was not set within {waited:?}; does the rank that sets it run?")]
    Timeout {
        /// Key.
        key: String,
        /// How long it was waited for.
        waited: Duration,
    },
    /// `add` on something that is no counter, or past 64 bits.
    #[error("key {key:?} cannot be added to: {detail}")]
    Counter {
        /// Key.
        key: String,
        /// What is wrong.
        detail: String,
    },
    /// The store is there and does not want this client.
    #[error("the store at {address} refused: {reason}")]
    Refused {
        /// Where it is.
        address: String,
        /// What it said.
        reason: String,
    },
    /// The store is not there or went away.
    #[error("the store at {address} cannot be reached: {message}; does its rank run?")]
    Unreachable {
        /// Where it should be.
        address: String,
        /// What the system said.
        message: String,
    },
    /// The other side said what the protocol does not allow.
    #[error("the store at {address} broke the protocol: {detail}")]
    Protocol {
        /// Where it is.
        address: String,
        /// What it said.
        detail: String,
    },
    /// The system refused.
    #[error("{what}: {message}")]
    Io {
        /// What was tried, on which path.
        what: String,
        /// What the system said.
        message: String,
    },
    /// A store outside this crate failed.
    #[error("{0}")]
    Other(String),
}
