//! How a simulated run ended.

use std::fmt;
use std::time::Duration;

/// Why a rank stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It was lost, as the scenario says.
    Lost,
    /// It waits for a flag of a rank.
    Flag {
        /// Who should raise it.
        from: u32,
        /// The flag.
        flag: u32,
    },
    /// It may not use a staging slot again before that rank has finished the slot's round.
    Slot {
        /// Who has not finished.
        from: u32,
    },
}

/// A rank that stood still when nothing could go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The rank.
    pub rank: u32,
    /// The oldest round it has not finished.
    pub round: u64,
    /// Its next step in that round.
    pub step: usize,
    /// Why it stands still.
    pub reason: Reason,
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} round {} step {} ", self.rank, self.round, self.step)?;
        match self.reason {
            Reason::Lost => write!(f, "was lost"),
            Reason::Flag { from, flag } => write!(f, "waits for flag {flag} of rank {from}"),
            Reason::Slot { from } => write!(f, "waits for rank {from} to finish with its slot"),
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome<T> {
    /// Output of each rank, all blocks one after the other.
    pub outputs: Vec<Vec<T>>,
    /// Virtual time until the last rank ended or stood still.
    pub elapsed: Duration,
    /// Ranks that did not finish; empty where all went well.
    pub blocked: Vec<Blocked>,
}
