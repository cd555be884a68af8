//! Symbolic proof that a plan is right.
//!
//! All ranks' programs of one round run on symbols instead of numbers: each piece of memory knows
//! which ranks' contributions it holds. The rules make the outcome the same for every order in
//! which ranks may run, so one run proves all of them:
//!
//! - Every piece of staging and output is written at most once a round. So whoever reads it after
//!   that write reads the same.
//! - What another rank wrote is read only after a wait for a signal that the writer raised after
//!   the write.
//! - A wait depends on a signal alone, and a flag is raised once a round. So who gets how far does
//!   not depend on order either, and a round that can stand still stands still in this run.
//!
//! Rounds do not disturb one another: they touch different elements of input and output and
//! different slots of the staging, a slot is used again only when all ranks have finished its
//! round, and flags count rounds.

mod check;
mod contributions;
mod error;
mod memory;
mod run;

use crate::{Collective, Plan, Program, Topology};

pub use error::{At, VerifyError, Waiting};

/// Whether input and output are the same memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Input and output are apart.
    Apart,
    /// Output is the input, or one holds the other as a block.
    InPlace,
}

/// What was proven, in figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Number of ranks.
    pub ranks: u32,
    /// Steps of all ranks in one round.
    pub steps: u64,
    /// Signals of all ranks in one round.
    pub signals: u64,
    /// Most sources of one reduce.
    pub largest_reduce: u32,
    /// Longest chain of signals of which each had to come before the next.
    pub hops: u32,
}

/// Prove `plan` right for any size, in place and not.
///
/// Makes the programs of all ranks. Plans in which every rank talks to every other take time and
/// memory with the square of the ranks.
///
/// # Errors
///
/// [`VerifyError`] names the rank, the step and the rule that is broken.
pub fn verify(plan: &Plan) -> Result<Report, VerifyError> {
    let topology = plan.topology();
    let programs: Vec<_> = (0..topology.ranks()).map(|rank| plan.program(rank)).collect();
    verify_programs(plan.collective(), topology, &programs)
}

/// Prove that `programs`, one for each rank in order, do `collective`.
///
/// # Errors
///
/// [`VerifyError`] names the rank, the step and the rule that is broken.
pub fn verify_programs(
    collective: Collective,
    topology: &Topology,
    programs: &[Program],
) -> Result<Report, VerifyError> {
    let flags = check::check(collective, topology, programs)?;
    let hops = run::run(collective, Form::Apart, programs, &flags)?;
    run::run(collective, Form::InPlace, programs, &flags)?;
    let steps = || programs.iter().flat_map(|program| &program.steps);
    let largest_reduce = steps()
        .map(|step| if let crate::Step::Reduce { srcs, .. } = step { srcs.len() as u32 } else { 0 })
        .max()
        .unwrap_or(0);
    Ok(Report {
        ranks: topology.ranks(),
        steps: steps().count() as u64,
        signals: steps().filter(|s| matches!(s, crate::Step::Signal { .. })).count() as u64,
        largest_reduce,
        hops,
    })
}
