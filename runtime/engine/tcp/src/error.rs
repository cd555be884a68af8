//! Why a TCP engine could not be made.

use std::time::Duration;

use stepccl_engine::EngineError;

use crate::config::{MAX_LINK_TIMEOUT, MIN_LINK_TIMEOUT};

/// Why a TCP engine could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TcpError {
    /// The ranks of this node are not what the host engine has.
    #[error(
        "rank {rank} with the local ranks {local:?}: they must include it and be ranks of the host engine"
    )]
    BadLocal {
        /// Ranks given.
        local: Vec<u32>,
        /// This rank.
        rank: u32,
    },
    /// A rank has no link, two, or one that it does not need.
    #[error("rank {rank} has {links} links; every rank of another node needs exactly one")]
    BadLinks {
        /// The rank.
        rank: u32,
        /// Links it has.
        links: usize,
    },
    /// The time after which a link counts as cut is out of range.
    #[error(
        "a link timeout of {given:?}; {MIN_LINK_TIMEOUT:?} to {MAX_LINK_TIMEOUT:?} are possible"
    )]
    LinkTimeout {
        /// Time given.
        given: Duration,
    },
    /// The host engine refused.
    #[error("host engine: {source}")]
    Host {
        /// Why.
        source: EngineError,
    },
    /// The system refused.
    #[error("{call}: {message}")]
    System {
        /// Call that failed.
        call: &'static str,
        /// What the system said.
        message: String,
    },
}

impl TcpError {
    /// A system call that failed.
    pub(crate) fn system(call: &'static str, error: impl std::fmt::Display) -> Self {
        Self::System { call, message: error.to_string() }
    }
}
