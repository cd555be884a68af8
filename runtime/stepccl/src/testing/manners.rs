//! How the made-up engines behave, and what they fail at.

/// How the engines behave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manners {
    /// Percent of submissions answered with "full".
    pub full: u32,
    /// Percent of submissions given to a channel.
    pub channel: u32,
    /// Regions of a user that a rank may have at once.
    pub regions: usize,
    /// Messages are announced by posts.
    pub boards: bool,
    /// Channels end nothing, and flags reach nobody, until `calm`.
    pub stuck: bool,
}

impl Default for Manners {
    fn default() -> Self {
        Self { full: 0, channel: 0, regions: usize::MAX, boards: false, stuck: false }
    }
}

/// A fault that is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The submission fails.
    Submit,
    /// A channel takes it and its completion is an error.
    Completion,
    /// A channel takes it and the ring fails at the next look.
    Ring,
    /// The signal fails.
    Signal,
    /// Every wait fails.
    Park,
}
