//! What can go wrong, with everything a reader of a log needs at night.

use std::fmt;
use std::time::Duration;

use stepccl_bootstrap::BootstrapError;
use stepccl_engine::EngineError;
use stepccl_plan::PlanError;

/// One operation as errors name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationName {
    /// Communicator it ran on.
    pub communicator: String,
    /// Rank that reports.
    pub rank: u32,
    /// Ranks of the communicator.
    pub ranks: u32,
    /// Collective, or `send` / `recv`.
    pub name: &'static str,
    /// Number of the operation on this communicator, from 0.
    pub sequence: u64,
    /// Bytes of the whole message on this rank.
    pub bytes: u64,
    /// Peer of a send or recv, root of a rooted collective.
    pub with: Option<With>,
}

/// The other rank that an operation names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum With {
    /// Root of a collective.
    Root(u32),
    /// Peer of a send or recv.
    Peer(u32),
}

impl fmt::Display for OperationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}: {} #{}", self.rank, self.ranks, self.name, self.sequence)?;
        match self.with {
            Some(With::Root(root)) => write!(f, " (root {root})")?,
            Some(With::Peer(peer)) => write!(f, " (peer {peer})")?,
            None => {}
        }
        write!(f, " of {} bytes on communicator '{}'", self.bytes, self.communicator)
    }
}

/// Why a peer does not answer any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LossReason {
    /// Its process ended.
    Died,
    /// The link to it ended: its process died, its host is down or the link is cut.
    Unreachable {
        /// What is known of the link.
        detail: String,
    },
    /// It destroyed its communicator.
    Closed,
    /// Its user aborted it.
    Aborted {
        /// What that user said, cut to about a hundred bytes.
        reason: String,
    },
    /// It failed, and blames this rank.
    Failed {
        /// Rank that it blames.
        culprit: u32,
    },
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Died => f.write_str("its process died"),
            Self::Unreachable { detail } => f.write_str(detail),
            Self::Closed => f.write_str("it destroyed its communicator"),
            Self::Aborted { reason } => write!(f, "it was aborted: {reason}"),
            Self::Failed { culprit } => write!(f, "it failed and blames rank {culprit}"),
        }
    }
}

/// Every error of this library.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value that the caller gave breaks a rule. Nothing was started; the communicator works on.
    #[error("{name} = {value}: {rule}")]
    InvalidArgument {
        /// Argument or setting.
        name: &'static str,
        /// What was given.
        value: String,
        /// What is possible.
        rule: String,
    },
    /// What was asked for does not exist (yet) here. The communicator works on.
    #[error("{what} is not supported: {why}")]
    NotSupported {
        /// What was asked for.
        what: String,
        /// Reason and way out.
        why: String,
    },
    /// The operation's time was over.
    #[error(
        "{operation}: timed out after {waited:.1?} on the {engine} engine, waiting for {waiting_for}. \
         Look at that rank's log; it may be slow, stuck or in another collective. {}",
        if *running {
            "Only this wait is over, the operation goes on"
        } else {
            "A longer timeout is an argument of the call and of the communicator"
        }
    )]
    Timeout {
        /// What timed out.
        operation: Box<OperationName>,
        /// Engine that moved it.
        engine: &'static str,
        /// How long it was waited for.
        waited: Duration,
        /// Ranks waited for.
        waiting_for: Ranks,
        /// Only a wait was over, and not the operation's own time: it goes on.
        running: bool,
    },
    /// A peer that the operation needs is gone.
    #[error(
        "{operation}: lost rank {peer} (pid {pid}): {reason}, after {waited:.1?}. \
         Its own log tells why; start the job again or make a new communicator without it"
    )]
    PeerLost {
        /// What needed the peer.
        operation: Box<OperationName>,
        /// Rank that is gone.
        peer: u32,
        /// Its process id, as that process saw it.
        pid: u32,
        /// What became of it.
        reason: LossReason,
        /// How long the operation had been waiting.
        waited: Duration,
    },
    /// Ranks called different collectives where all must call the same. The communicator is broken
    /// on every rank.
    #[error(
        "{operation}: ranks differ in collective #{number} of the communicator: {calls}. Every rank \
         must call the same collectives in the same order, with the same type, count, operation \
         and root"
    )]
    CallMismatch {
        /// What ran when it was found.
        operation: Box<OperationName>,
        /// Number of the collective in which they differ, from 0.
        number: u64,
        /// Who called what.
        calls: Calls,
    },
    /// A message does not fit the receive that was posted for it.
    #[error(
        "{operation}: rank {peer} sent {sent_bytes} bytes with tag {sent_tag}, this recv expects \
         {expected_bytes} bytes with tag {expected_tag}. Messages of a pair arrive in the order sent"
    )]
    MessageMismatch {
        /// The receive.
        operation: Box<OperationName>,
        /// Who sent.
        peer: u32,
        /// Bytes that were sent.
        sent_bytes: u64,
        /// Tag that was sent.
        sent_tag: i32,
        /// Bytes expected.
        expected_bytes: u64,
        /// Tag expected.
        expected_tag: i32,
    },
    /// The communicator was aborted.
    #[error("communicator '{communicator}', rank {rank}: aborted: {reason}")]
    Aborted {
        /// Its name.
        communicator: String,
        /// Own rank.
        rank: u32,
        /// What the caller of abort said.
        reason: String,
    },
    /// An earlier operation failed, so that no later one can be right.
    #[error("communicator '{communicator}', rank {rank} is broken by an earlier error: {first}")]
    Broken {
        /// Its name.
        communicator: String,
        /// Own rank.
        rank: u32,
        /// The earlier error.
        first: String,
    },
    /// Ranks were started with different settings.
    #[error(
        "rank {rank} has {setting} = {own}, rank {peer} has {theirs}: every rank of communicator \
         '{communicator}' must be given the same"
    )]
    Disagreement {
        /// Its name.
        communicator: String,
        /// Own rank.
        rank: u32,
        /// The other rank.
        peer: u32,
        /// Which setting.
        setting: String,
        /// Own value.
        own: String,
        /// The other's value.
        theirs: String,
    },
    /// Start-up failed.
    #[error(transparent)]
    Bootstrap(#[from] BootstrapError),
    /// No plan can be made. Nothing was started; the communicator works on.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The engine refused or failed.
    #[error("{context}: {source}")]
    Engine {
        /// What was going on.
        context: String,
        /// What the engine said.
        source: EngineError,
    },
    /// The system refused.
    #[error("{what}: {message}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        message: String,
    },
}

/// Who called what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls(pub Vec<(Ranks, String)>);

impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (ranks, call)) in self.0.iter().enumerate() {
            write!(f, "{}{ranks} called {call}", if i == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

/// A list of ranks, short in print.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranks(pub Vec<u32>);

impl fmt::Display for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        match self.0.as_slice() {
            [] => f.write_str("no rank"),
            [one] => write!(f, "rank {one}"),
            many => {
                f.write_str("ranks ")?;
                for (i, rank) in many.iter().take(SHOWN).enumerate() {
                    write!(f, "{}{rank}", if i == 0 { "" } else { ", " })?;
                }
                if many.len() > SHOWN {
                    write!(f, " and {} more", many.len() - SHOWN)?;
                }
                Ok(())
            }
        }
    }
}

impl Error {
    /// Whether the communicator cannot be used any more.
    #[must_use]
    pub const fn is_fatal(&self) -> bool {
        !matches!(
            self,
            Self::InvalidArgument { .. }
                | Self::NotSupported { .. }
                | Self::Plan(_)
                | Self::Timeout { running: true, .. }
        )
    }

    pub(crate) fn invalid(
        name: &'static str,
        value: impl fmt::Display,
        rule: impl Into<String>,
    ) -> Self {
        Self::InvalidArgument { name, value: value.to_string(), rule: rule.into() }
    }
}
