//! What ranks know of one another's life.

/// What became of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankState {
    /// At work.
    Running,
    /// Left in good order.
    Closed,
    /// Gave up; `culprit` is the rank it blames, itself where it has no other.
    Failed {
        /// Rank that is blamed.
        culprit: u32,
    },
}

/// A peer that will not signal any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPeer {
    /// Its rank.
    pub rank: u32,
    /// Its process id as that process saw it.
    pub pid: u32,
    /// The last it said; `Running` means it died.
    pub state: RankState,
}
