//! What the verifier objects to.

use std::fmt;

use super::Form;
use crate::{Place, Span};

/// A step of a rank's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Rank that runs it.
    pub rank: u32,
    /// Index in its steps.
    pub step: u32,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} step {}", self.rank, self.step)
    }
}

/// A rank that stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Where it stands.
    pub at: At,
    /// For whom it waits.
    pub from: u32,
    /// For which of that rank's flags.
    pub flag: u32,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} waits for flag {} of rank {}", self.at, self.flag, self.from)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.place {
            Place::Input => "input",
            Place::Output => "output",
            Place::Staging => "staging",
        };
        let (rank, block, first) = (self.rank, self.block, self.first);
        write!(
            f,
            "{place}[{block}] of rank {rank} parts {first}..{}",
            first.saturating_add(self.count)
        )
    }
}

/// What is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// Not one program for each rank, or programs that disagree about parts, areas or flags.
    #[error("program {index}: {problem}")]
    BadProgram {
        /// Index of the program.
        index: u32,
        /// What is wrong.
        problem: &'static str,
    },
    /// A span leaves its memory, or belongs to a rank that may not be touched this way.
    #[error("{at}: {span}: {problem}")]
    BadSpan {
        /// The step.
        at: At,
        /// The span.
        span: Span,
        /// What is wrong.
        problem: &'static str,
    },
    /// A step that no rank could run.
    #[error("{at}: {problem}")]
    BadStep {
        /// The step.
        at: At,
        /// What is wrong.
        problem: &'static str,
    },
    /// A flag is raised for the second time in a round.
    #[error("{at}: raises flag {flag} a second time in the round")]
    RaisedTwice {
        /// The step.
        at: At,
        /// The flag.
        flag: u32,
    },
    /// A wait for what nobody raises, or tells others only.
    #[error("{0}, which is never raised for it")]
    UnmatchedWait(Waiting),
    /// A wait for the same flag for the second time.
    #[error("{0} a second time")]
    RepeatedWait(Waiting),
    /// A signal to one rank that does not wait for it.
    #[error("{at}: signals flag {flag} to rank {to}, which does not wait for it")]
    UnheardSignal {
        /// The step.
        at: At,
        /// The flag.
        flag: u32,
        /// Who is told.
        to: u32,
    },
    /// Memory that nobody wrote in this round is read.
    #[error("{at} ({form:?}): reads {span} before it is written")]
    ReadBeforeWrite {
        /// The step.
        at: At,
        /// Input and output apart or not.
        form: Form,
        /// The span, from the first unwritten part on.
        span: Span,
    },
    /// Another rank's data is read without having waited for it.
    #[error("{at}: reads {span}, written by {writer}, without a wait for a later signal of it")]
    Unordered {
        /// The step.
        at: At,
        /// What is read.
        span: Span,
        /// Who wrote it.
        writer: At,
    },
    /// Memory is written for the second time in a round.
    #[error("{at} ({form:?}): writes {span} again, after {first}")]
    WrittenTwice {
        /// The step.
        at: At,
        /// Input and output apart or not.
        form: Form,
        /// What is written.
        span: Span,
        /// Who wrote it before.
        first: At,
    },
    /// A reduction takes the same contribution twice, or those of different blocks.
    #[error("{at} ({form:?}): reduces into {span}: {problem}")]
    BadReduce {
        /// The step.
        at: At,
        /// Input and output apart or not.
        form: Form,
        /// Where the result goes.
        span: Span,
        /// What is wrong.
        problem: &'static str,
    },
    /// The round stands still.
    #[error("the round stands still: {}", list(.0))]
    Deadlock(Vec<Waiting>),
    /// An output does not hold what it should.
    #[error("({form:?}) {span} ends with {found}; it should hold {wanted}")]
    WrongOutput {
        /// Input and output apart or not.
        form: Form,
        /// The output.
        span: Span,
        /// What it holds.
        found: String,
        /// What it should hold.
        wanted: String,
    },
    /// A rank leaves a barrier before another has come.
    #[error("rank {rank} leaves the barrier without having heard of rank {missing}")]
    BarrierLeaks {
        /// Rank that leaves.
        rank: u32,
        /// Rank that may not have come.
        missing: u32,
    },
}

fn list(waiting: &[Waiting]) -> String {
    const SHOWN: usize = 8;
    let mut text: Vec<_> = waiting.iter().take(SHOWN).map(ToString::to_string).collect();
    if waiting.len() > SHOWN {
        text.push(format!("and {} more ranks", waiting.len() - SHOWN));
    }
    text.join("; ")
}
