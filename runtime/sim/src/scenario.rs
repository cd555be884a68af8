//! What is simulated.

use stepccl_plan::{Collective, Figures, Program, ReduceOp, Topology};

/// In which order ranks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As the figures say: the rank whose clock is lowest goes first.
    Clock,
    /// At random from this seed, any round in flight that can go on.
    Random(u64),
}

/// A rank that stops for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The rank.
    pub rank: u32,
    /// Steps it still runs, of all rounds together.
    pub after_steps: u64,
}

/// A signal that comes late.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    /// Rank that raises it.
    pub rank: u32,
    /// Its flag.
    pub flag: u32,
    /// Round in which it is late.
    pub round: u64,
    /// How late, in nanoseconds.
    pub by_ns: f64,
}

/// What goes wrong.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Ranks that stop.
    pub lost: Vec<Loss>,
    /// Ranks that take so many times as long for each step.
    pub slow: Vec<(u32, f64)>,
    /// Signals that come late.
    pub delayed: Vec<Delay>,
}

/// One collective of all ranks.
#[derive(Clone, Debug)]
pub struct Scenario<'a> {
    /// What the programs compute.
    pub collective: Collective,
    /// Where the ranks are.
    pub topology: &'a Topology,
    /// One program for each rank, in order.
    pub programs: &'a [Program],
    /// How contributions are combined.
    pub op: ReduceOp,
    /// Elements of a block.
    pub count: usize,
    /// Elements of a page, at least 1.
    pub page: usize,
    /// Rounds in flight, at least 1.
    pub depth: u32,
    /// Whether input and output are the same memory.
    pub in_place: bool,
    /// What steps and signals cost.
    pub figures: Figures,
    /// In which order ranks run.
    pub order: Order,
    /// What goes wrong.
    pub faults: Faults,
}

impl Scenario<'_> {
    /// Rounds in all.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        match self.collective {
            Collective::Barrier => 1,
            _ => self.count.div_ceil(self.page.max(1)) as u64,
        }
    }
}
