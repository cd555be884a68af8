//! Why ranks did not come together.

use std::time::Duration;

use crate::{SecretError, StoreError};

/// Why [`crate::join`] or an exchange of a [`crate::Mesh`] failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// A value of the caller breaks a rule; nothing was written to the store.
    #[error("{what}")]
    Argument {
        /// Value and rule.
        what: String,
    },
    /// Another process or thread holds this rank.
    #[error(
        "communicator {name:?}: rank {rank} is already taken by {holder}; give every process its \
         own rank, or a new communicator name if this is a restart"
    )]
    DuplicateRank {
        /// Communicator.
        name: String,
        /// Rank asked for twice.
        rank: u32,
        /// Who holds it.
        holder: String,
    },
    /// This rank and others cannot work together, or one of them gave up.
    #[error("communicator {name:?}, rank {rank}: refused: {reason}")]
    Refused {
        /// Communicator.
        name: String,
        /// This rank.
        rank: u32,
        /// Why, as the rank that found out says it.
        reason: String,
    },
    /// Somebody did not come in time.
    #[error(
        "communicator {name:?}, rank {rank}: {waited:?} passed while {during}; missing: {}. \
         Check that these processes run, that all use the same store and name, or raise the timeout",
        ranks_text(missing)
    )]
    Timeout {
        /// Communicator.
        name: String,
        /// This rank.
        rank: u32,
        /// What was waited for.
        during: String,
        /// How long.
        waited: Duration,
        /// Who is missing.
        missing: Vec<u32>,
    },
    /// What a rank published cannot be read.
    #[error(
        "communicator {name:?}, rank {rank}: what rank {peer} published is not valid: {detail}; \
         check that all ranks run the same release and that nothing else writes to the store"
    )]
    BadInfo {
        /// Communicator.
        name: String,
        /// This rank.
        rank: u32,
        /// Whose entry it is.
        peer: u32,
        /// What is wrong with it.
        detail: String,
    },
    /// A store entry of the communicator cannot be read.
    #[error(
        "communicator {name:?}, rank {rank}: store entry {key:?} is not valid: {detail}; check that \
         all ranks run the same release and that nothing else writes to the store"
    )]
    BadEntry {
        /// Communicator.
        name: String,
        /// This rank.
        rank: u32,
        /// Key of the entry.
        key: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A peer ended, or closed its links after an error of its own.
    #[error(
        "communicator {name:?}, rank {rank}: rank {peer} (pid {pid}) ended or gave up while {during}; \
         look at its output for the first error"
    )]
    PeerLost {
        /// Communicator.
        name: String,
        /// This rank.
        rank: u32,
        /// Who ended.
        peer: u32,
        /// Its process.
        pid: u32,
        /// What this rank was doing.
        during: String,
    },
    /// No address of a rank of another node leads to it.
    #[error(
        "communicator {name:?}, rank {rank}: rank {peer} on {node} cannot be reached ({tried}). Check \
         that it still runs, that no firewall stands between the nodes (ports are chosen by the \
         system), and choose the interfaces that connect them with STEPCCL_SOCKET_IFNAME"
    )]
    Unreachable {
        /// Communicator.
        name: String,
        /// This rank.
        rank: u32,
        /// Who was called.
        peer: u32,
        /// Name of its node.
        node: String,
        /// What came of each address.
        tried: String,
    },
    /// A peer sent what the protocol does not allow.
    #[error("communicator {name:?}, rank {rank}: rank {peer} broke the protocol: {detail}")]
    Protocol {
        /// Communicator.
        name: String,
        /// This rank.
        rank: u32,
        /// Who did.
        peer: u32,
        /// What it sent and what was due.
        detail: String,
    },
    /// An exchange failed before, so that the streams are no longer in step.
    #[error(
        "communicator {name:?}, rank {rank}: an earlier exchange failed ({reason}); make the \
         communicator again under a new name"
    )]
    Broken {
        /// Communicator.
        name: String,
        /// This rank.
        rank: u32,
        /// The earlier error.
        reason: String,
    },
    /// The store failed.
    #[error("communicator {name:?}, rank {rank}: store: {source}")]
    Store {
        /// Communicator.
        name: String,
        /// This rank.
        rank: u32,
        /// Why.
        source: StoreError,
    },
    /// No secret could be made.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The system refused.
    #[error("{call}: {message}")]
    System {
        /// Call that failed.
        call: &'static str,
        /// What the system said.
        message: String,
    },
}

impl BootstrapError {
    /// A system call that failed.
    pub(crate) fn system(call: &'static str, error: impl std::fmt::Display) -> Self {
        Self::System { call, message: error.to_string() }
    }
}

/// `rank 1`, `ranks 1, 2, 3` or `ranks 0 to 7`, shortened where there are many.
pub(crate) fn ranks_text(ranks: &[u32]) -> String {
    const SHOWN: usize = 16;
    match ranks {
        [] => "no rank".to_owned(),
        [one] => format!("rank {one}"),
        [first, .., last] if ranks.len() > 2 && ranks.windows(2).all(|w| w[1] == w[0] + 1) => {
            format!("ranks {first} to {last}")
        }
        _ => {
            let shown: Vec<_> = ranks.iter().take(SHOWN).map(u32::to_string).collect();
            let more = ranks.len().saturating_sub(SHOWN);
            let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("ranks {}{tail}", shown.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_ranks_stay_short() {
        assert_eq!(ranks_text(&[3]), "rank 3");
        assert_eq!(ranks_text(&[1, 2]), "ranks 1, 2");
        assert_eq!(ranks_text(&[4, 5, 6, 7]), "ranks 4 to 7");
        let odd: Vec<u32> = (0..40).map(|n| 2 * n + 1).collect();
        assert!(ranks_text(&odd).ends_with("31 and 24 more"));
    }
}
