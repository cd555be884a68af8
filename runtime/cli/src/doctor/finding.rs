//! What a check found.

use std::fmt;

/// How good what was found is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// As it should be.
    Ok,
    /// Works, but slower or less than it could.
    Warn,
    /// Something will not work.
    Fail,
    /// This machine does not have it, and can do without.
    NotHere,
}

impl Verdict {
    pub const ALL: [Self; 4] = [Self::Ok, Self::Warn, Self::Fail, Self::NotHere];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::NotHere => "not here",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A verdict, the fact that it rests on, and what to do where it is not ok.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub verdict: Verdict,
    pub fact: String,
    /// A command; words behind `#` say when it is the right one.
    pub fix: Option<String>,
}

impl Finding {
    pub fn ok(fact: impl Into<String>) -> Self {
        Self { verdict: Verdict::Ok, fact: fact.into(), fix: None }
    }

    pub fn warn(fact: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warn, fact: fact.into(), fix: Some(fix.into()) }
    }

    pub fn fail(fact: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Fail, fact: fact.into(), fix: Some(fix.into()) }
    }

    pub fn not_here(fact: impl Into<String>) -> Self {
        Self { verdict: Verdict::NotHere, fact: fact.into(), fix: None }
    }

    /// With a command to get there.
    pub fn with_fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }
}
