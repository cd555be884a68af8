//! Times the calls of one size.

use std::collections::TryReserveError;
use std::time::Instant;

use stepccl::{Communicator, ReduceOp};

use super::Args;
use super::case::Case;
use super::place::Place;
use super::sizes::Size;
use super::values::Values;

/// Times of one size and form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// Mean of a call in microseconds, combined over ranks.
    pub us: f64,
    /// Wrong elements over all ranks; none where not checked.
    pub wrong: Option<u64>,
}

/// A line of the report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub case: Case,
    pub size: Size,
    pub out_of_place: Timing,
    /// None where the collective has no such form.
    pub in_place: Option<Timing>,
}

impl Row {
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
    let shared = Place::shared(case, rank, size.count).map_err(no_memory)?;
    let in_place = shared.map(|place| form(args, communicator, case, place)).transpose()?;
    Ok(Row { case, size, out_of_place, in_place })
}

fn form(
    args: &Args,
    communicator: &Communicator,
    case: Case,
    mut place: Place,
) -> Result<Timing, stepccl::Error> {
    let calls = |place: &mut Place, times: u32| {
        let call = place.call();
        for _ in 0..times {
            // SAFETY:
            // - `place` has the blocks of input and output that the call names, lives, and is
            //   borrowed until every call is over: a call without a work waits for its end.
            unsafe { communicator.run(call.clone(), None)? };
        }
        Ok::<(), stepccl::Error>(())
    };
    calls(&mut place, args.warmup)?;
    communicator.barrier()?;
    let start = Instant::now();
    calls(&mut place, args.iterations)?;
    let own = start.elapsed().as_secs_f64() * 1e6 / f64::from(args.iterations);

    let mut wrong = None;
    if args.check == 1 {
        // New data after the timing: results left over from other calls do not pass.
        let count = place.call().count;
        let values = Values { case, count, seed: fresh_seed(communicator)? };
        place.fill(&values);
        calls(&mut place, 1)?;
        let mut all = [place.wrong(&values) as i64];
        communicator.all_reduce_in_place(&mut all, ReduceOp::Sum)?;
        wrong = Some(all[0] as u64);
    }
    Ok(Timing { us: over_ranks(args, communicator, own)?, wrong })
}

/// The time to show, from that of each rank.
fn over_ranks(args: &Args, communicator: &Communicator, own: f64) -> Result<f64, stepccl::Error> {
    let op = match args.average {
        // Rank 0 makes the report.
        0 => return Ok(own),
        2 => ReduceOp::Min,
        3 => ReduceOp::Max,
        _ => ReduceOp::Avg,
    };
    let mut all = [own];
    communicator.all_reduce_in_place(&mut all, op)?;
    Ok(all[0])
}

/// A number that differs from run to run and is the same on every rank.
fn fresh_seed(communicator: &Communicator) -> Result<u64, stepccl::Error> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let mut seed = [now.map_or(0, |t| t.as_nanos() as i64)];
    communicator.broadcast(&mut seed, 0)?;
    Ok(seed[0] as u64)
}
