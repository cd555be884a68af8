//! The four words of the system: copy, reduce, signal and wait.
//!
//! Steps speak of one **round**. A collective of any size runs as rounds of at most one *page* of
//! elements a block; every round runs the same steps on the next elements, in its own slot of the
//! staging. So a program does not depend on the size of the message, and staging stays bounded.

/// Which memory of a rank a [`Span`] lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The caller's input; `block` is the block of the collective.
    Input,
    /// The caller's output; `block` is the block of the collective.
    Output,
    /// Staging of the round's slot; `block` is the area, each as large as a page.
    Staging,
}

/// A piece of a round's page: parts `first .. first + count` of the program's `parts`.
///
/// Boundaries come from [`boundary`](crate::boundary), the same for every rank and place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// Rank that owns the memory.
    pub rank: u32,
    /// Kind of memory.
    pub place: Place,
    /// Block of the buffer, or area of the staging.
    pub block: u32,
    /// First part.
    pub first: u32,
    /// Number of parts.
    pub count: u32,
}

/// Who a signal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Targets {
    /// One rank.
    One(u32),
    /// Every other rank.
    All,
}

/// One step of a rank's program. Steps of a round run in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Move the elements of `src` to `dst`, which has as many parts.
    Copy {
        /// From where.
        src: Span,
        /// To where.
        dst: Span,
    },
    /// Combine the elements of all `srcs`, in that order, into `dst`. `dst` may be one of `srcs`.
    Reduce {
        /// What is combined: at least two spans of as many parts as `dst`.
        srcs: Vec<Span>,
        /// Where the result goes.
        dst: Span,
        /// The result holds every contribution: an average divides here.
        last: bool,
    },
    /// Tell `to` that all earlier steps of this round are done.
    Signal {
        /// Flag of this rank that is raised. Each flag is raised at most once a round.
        flag: u32,
        /// Who is told.
        to: Targets,
    },
    /// Go on only when rank `from` has raised its `flag` in this round.
    Wait {
        /// Rank that raises the flag.
        from: u32,
        /// Which of its flags.
        flag: u32,
    },
}
