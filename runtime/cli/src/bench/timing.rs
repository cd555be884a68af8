//! Times the calls of one size.

use std::time::Instant;

use stepccl::{Call, Collective, Communicator, Error, Memory, ReduceOp};

use super::Args;
use super::data::{Buffer, Expected};
use super::sizes::{Size, blocks};

/// Times of one size and form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// Mean of a call in microseconds, averaged over ranks.
    pub us: f64,
    /// Wrong elements over all ranks; none where not checked.
    pub wrong: Option<u64>,
}

/// A line of the report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
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

/// Where the input stands in the memory of the output, in blocks: `(memory blocks, input, output)`.
fn in_place_layout(collective: Collective, rank: u32, ranks: u32) -> Option<(u32, u32, u32)> {
    match collective {
        Collective::AllReduce | Collective::Broadcast { .. } | Collective::Reduce { .. } => {
            Some((1, 0, 0))
        }
        Collective::AllGather | Collective::Gather { .. } => Some((ranks, rank, 0)),
        Collective::ReduceScatter | Collective::Scatter { .. } => Some((ranks, 0, rank)),
        _ => None,
    }
}

pub(crate) fn row(args: &Args, communicator: &Communicator, size: Size) -> Result<Row, Error> {
    let out_of_place = form(args, communicator, size, None)?;
    let layout = in_place_layout(args.collective, communicator.rank(), communicator.ranks());
    let in_place = match layout {
        Some(layout) => Some(form(args, communicator, size, Some(layout))?),
        None => None,
    };
    Ok(Row { size, out_of_place, in_place })
}

fn form(
    args: &Args,
    communicator: &Communicator,
    size: Size,
    layout: Option<(u32, u32, u32)>,
) -> Result<Timing, Error> {
    let (rank, ranks) = (communicator.rank(), communicator.ranks());
    let collective = args.collective.with_root(args.root);
    let block = size.count * args.dtype.size();
    let all = blocks(collective, ranks) * block;
    let seed = fresh_seed(communicator)?;

    let mut input = Buffer::new(all);
    let mut output = Buffer::new(all);
    let (from, to, offset) = match layout {
        None => (input.pointer(), output.pointer(), 0),
        Some((_, source, target)) => {
            let base = output.pointer();
            let at = |b: u32| base.wrapping_add(b as usize * block);
            (at(source), at(target), target as usize * size.count)
        }
    };
    let memory = |pointer, blocks| match blocks {
        0 => Memory::None,
        _ => Memory::Contiguous(pointer),
    };
    let call = Call {
        collective,
        dtype: args.dtype,
        op: args.op,
        count: size.count,
        input: memory(from, collective.input_blocks(rank, ranks)),
        output: memory(to, collective.output_blocks(rank, ranks)),
    };
    // SAFETY:
    // - Both buffers have the blocks of the largest rank's input and output, live until the end of
    //   this function, and are touched by nothing else while a call runs.
    let run = || unsafe { communicator.run(call.clone(), None) };

    for _ in 0..args.warmup {
        run()?;
    }
    communicator.barrier()?;
    let start = Instant::now();
    for _ in 0..args.iterations {
        run()?;
    }
    let us = start.elapsed().as_secs_f64() * 1e6 / f64::from(args.iterations);

    let wrong = if args.check == 1 {
        communicator.barrier()?;
        let mut fresh = Buffer::new(all);
        fresh.fill(rank, args.dtype, seed);
        output.poison();
        let inputs = collective.input_blocks(rank, ranks) as usize * block;
        // SAFETY:
        // - `from` has room for the input blocks, `fresh` is as long, and both are apart.
        unsafe { std::ptr::copy_nonoverlapping(fresh.pointer(), from, inputs) };
        communicator.barrier()?;
        run()?;
        let (dtype, op, count) = (args.dtype, args.op, size.count);
        let expected = Expected { collective, dtype, op, rank, ranks, count, seed };
        let mut wrong = [expected.wrong(&output, offset) as i64];
        communicator.all_reduce_in_place(&mut wrong, ReduceOp::Sum)?;
        Some(wrong[0] as u64)
    } else {
        None
    };
    let mut mean = [us];
    communicator.all_reduce_in_place(&mut mean, ReduceOp::Avg)?;
    Ok(Timing { us: mean[0], wrong })
}

/// A number that differs from run to run and is the same on every rank.
fn fresh_seed(communicator: &Communicator) -> Result<u64, Error> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let mut seed = [now.map_or(0, |t| t.as_nanos() as i64)];
    communicator.broadcast(&mut seed, 0)?;
    Ok(seed[0] as u64)
}
