//! States, as numbers in the record.

/// How far an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Its record is being written.
    Writing,
    /// Called, and behind others.
    Queued,
    /// Under way.
    Running,
    /// Ended well.
    Done,
    /// Ended with an error.
    Failed,
}

/// Bits of a stamp that hold the phase; the number is above them.
pub(crate) const PHASE_BITS: u32 = 3;

impl Phase {
    /// Number in a stamp, from 1.
    #[must_use]
    pub const fn number(self) -> u64 {
        self as u64 + 1
    }

    /// The phase with this number.
    #[must_use]
    pub const fn from_number(number: u64) -> Option<Self> {
        match number {
            1 => Some(Self::Writing),
            2 => Some(Self::Queued),
            3 => Some(Self::Running),
            4 => Some(Self::Done),
            5 => Some(Self::Failed),
            _ => None,
        }
    }

    /// Name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Writing => "writing",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    /// Whether the operation has not ended.
    #[must_use]
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Writing | Self::Queued | Self::Running)
    }
}

/// The first word of a record: whose it is and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub sequence: u64,
    pub phase: Phase,
}

impl Stamp {
    pub const fn word(self) -> u64 {
        self.sequence << PHASE_BITS | self.phase.number()
    }

    /// None for a place that was never used, and for a number that is no phase.
    pub fn parse(word: u64) -> Option<Self> {
        let phase = Phase::from_number(word & ((1 << PHASE_BITS) - 1))?;
        Some(Self { sequence: word >> PHASE_BITS, phase })
    }
}

/// State of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Works.
    Open,
    /// An operation failed; no later one is possible.
    Failed,
    /// Closed in good order.
    Closed,
    /// A number that this version does not know.
    Unknown(u32),
}

impl State {
    /// Number in the header.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Open => 1,
            Self::Failed => 2,
            Self::Closed => 3,
            Self::Unknown(number) => number,
        }
    }

    /// The state with this number.
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Open,
            2 => Self::Failed,
            3 => Self::Closed,
            other => Self::Unknown(other),
        }
    }

    /// Name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Failed => "failed",
            Self::Closed => "closed",
            Self::Unknown(_) => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_keep_number_and_phase() {
        for phase in (1..=5).filter_map(Phase::from_number) {
            let stamp = Stamp { sequence: 12_345, phase };
            assert_eq!(Stamp::parse(stamp.word()), Some(stamp));
        }
        assert_eq!(Stamp::parse(0), None);
        assert_eq!(Stamp::parse(7), None);
    }

    #[test]
    fn states_keep_their_numbers() {
        for number in 0..5 {
            assert_eq!(State::from_number(number).number(), number);
        }
    }
}
