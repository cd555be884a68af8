//! Times the calls of one size.

use std::collections::TryReserveError;
use std::time::Instant;

use stepccl::{Communicator, ReduceOp, Request};

use super::Args;
use super::case::Case;
use super::operation::Operation;
use super::percentiles::Percentiles;
use super::place::Place;
use super::sizes::Size;
use super::values::Values;

/// Times of one size and form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// Mean of a call in microseconds, combined over ranks.
    pub us: f64,
    /// Where the times of single calls lie; none where they were not asked for.
    pub percentiles: Option<Percentiles>,
    /// Wrong elements over all ranks; none where not checked.
    pub wrong: Option<u64>,
}

/// A line of the report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub case: Case,
    pub size: Size,
    /// Input and output apart; of a group, its members in the group.
    pub out_of_place: Timing,
    /// Input and output in one memory; of a group, one call of its total size. None where the
    /// operation has no such form.
    pub in_place: Option<Timing>,
}

impl Row {
    /// How many times as long the group takes as one call of its total size.
    pub fn group_ratio(&self) -> Option<f64> {
        let Operation::Group { .. } = self.case.operation else { return None };
        Some(self.out_of_place.us / self.in_place?.us.max(1e-3))
    }

    pub fn wrong(&self) -> u64 {
        self.out_of_place.wrong.unwrap_or(0) + self.in_place.and_then(|t| t.wrong).unwrap_or(0)
    }
}

/// Why a size could not be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TimingError {
    #[error(transparent)]
    Collective(#[from] stepccl::Error),
    #[error("no memory for the buffers of size {}: {source}; give a smaller -e or raise the limit (ulimit -v)", stepccl_plan::format_bytes(*bytes as u64))]
    Memory { bytes: usize, source: TryReserveError },
}

/// Measure one size in every form that the collective has.
///
/// # Errors
///
/// [`TimingError`].
pub(crate) fn row(
    args: &Args,
    communicator: &Communicator,
    case: Case,
    size: Size,
) -> Result<Row, TimingError> {
    let no_memory = |source| TimingError::Memory { bytes: size.bytes, source };
    let rank = communicator.rank();
    let apart = Place::apart(case, rank, size.count).map_err(no_memory)?;
    let out_of_place = form(args, communicator, case, apart)?;
    let other = Place::other(case, rank, size.count).map_err(no_memory)?;
    let in_place = other.map(|place| form(args, communicator, case, place)).transpose()?;
    Ok(Row { case, size, out_of_place, in_place })
}

fn form(
    args: &Args,
    communicator: &Communicator,
    case: Case,
    mut place: Place,
) -> Result<Timing, stepccl::Error> {
    calls(communicator, &mut place, args.warmup, || {})?;
    communicator.barrier()?;
    // The clock is read in between only where single calls are asked for: it takes some 20 ns.
    let single = if args.percentiles { args.iterations as usize } else { 0 };
    let mut ends = Vec::with_capacity(single);
    let start = Instant::now();
    calls(communicator, &mut place, args.iterations, || {
        if single > 0 {
            ends.push(start.elapsed().as_secs_f64());
        }
    })?;
    let shown = 1e6 / case.operation.messages();
    // The mean is that of the single calls, where they were timed.
    let total = ends.last().copied().unwrap_or_else(|| start.elapsed().as_secs_f64());
    let own = total * shown / f64::from(args.iterations);
    let begins = std::iter::once(&0.0).chain(&ends);
    let mut singles: Vec<_> = begins.zip(&ends).map(|(begin, end)| (end - begin) * shown).collect();
    over_ranks(args, communicator, &mut singles)?;

    let mut wrong = None;
    if args.check == 1 {
        // New data after the timing: results left over from other calls do not pass.
        let count = place.count();
        let values = Values { case, count, seed: fresh_seed(communicator)? };
        place.fill(&values);
        calls(communicator, &mut place, 1, || {})?;
        let mut all = [place.wrong(&values) as i64];
        communicator.all_reduce_in_place(&mut all, ReduceOp::Sum)?;
        wrong = Some(all[0] as u64);
    }
    let mut us = [own];
    over_ranks(args, communicator, &mut us)?;
    Ok(Timing { us: us[0], percentiles: Percentiles::of(singles), wrong })
}

/// Call so many times; `ended` is told the end of each.
fn calls(
    communicator: &Communicator,
    place: &mut Place,
    times: u32,
    mut ended: impl FnMut(),
) -> Result<(), stepccl::Error> {
    let steps = place.steps();
    // A call of one request takes the short way.
    let alone: Vec<Option<Request>> = steps
        .iter()
        .map(|step| if let [one] = &step[..] { Some(one.clone()) } else { None })
        .collect();
    for _ in 0..times {
        for (step, alone) in steps.iter().zip(&alone) {
            // SAFETY:
            // - `place` has the memory that the requests name, lives, and is borrowed until every
            //   request is over: one without a work waits for its end. What one request of a step
            //   writes, no other touches: input and output of messages stand apart.
            unsafe {
                match alone {
                    Some(one) => communicator.run(one.clone(), None)?,
                    None => communicator.run_group(step.clone(), None)?,
                }
            }
        }
        ended();
    }
    Ok(())
}

/// The times to show, from those of each rank.
fn over_ranks(
    args: &Args,
    communicator: &Communicator,
    times: &mut [f64],
) -> Result<(), stepccl::Error> {
    let op = match args.average {
        // Rank 0 makes the report.
        0 => return Ok(()),
        _ if times.is_empty() => return Ok(()),
        2 => ReduceOp::Min,
        3 => ReduceOp::Max,
        _ => ReduceOp::Avg,
    };
    communicator.all_reduce_in_place(times, op)
}

/// A number that differs from run to run and is the same on every rank.
fn fresh_seed(communicator: &Communicator) -> Result<u64, stepccl::Error> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let mut seed = [now.map_or(0, |t| t.as_nanos() as i64)];
    communicator.broadcast(&mut seed, 0)?;
    Ok(seed[0] as u64)
}
