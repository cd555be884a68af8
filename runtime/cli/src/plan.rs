//! `stepccl plan`: what the cost model would do, for any number of ranks, on no machine at all.

use std::error::Error;
use std::process::ExitCode;

use stepccl::{Algorithm, Collective, DType, Topology};
use stepccl_plan::{Figures, Limits, Plan, choose, describe};

use crate::bench::{parse_bytes, parse_collective, parse_dtype};

/// Show the plan of a collective, its predicted time and the lower bound.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// all_reduce, broadcast, reduce, all_gather, reduce_scatter, all_to_all, gather, scatter or
    /// barrier.
    #[arg(value_parser = parse_collective)]
    collective: Collective,
    /// Ranks of the communicator.
    #[arg(long, default_value_t = 2)]
    ranks: u32,
    /// Nodes they are on, in order and as even as possible.
    #[arg(long, default_value_t = 1)]
    nodes: u32,
    /// Size of the message as nccl-tests counts it: the larger of a rank's input and output.
    #[arg(long, default_value = "1M", value_parser = parse_bytes)]
    bytes: usize,
    /// Type of the elements.
    #[arg(short = 'd', long = "datatype", default_value = "float", value_parser = parse_dtype)]
    dtype: DType,
    /// Root of a rooted collective.
    #[arg(short = 'r', long, default_value_t = 0)]
    root: u32,
    /// Use this algorithm and not the one the cost model chooses.
    #[arg(long)]
    algorithm: Option<Algorithm>,
    /// Staging of a rank in bytes.
    #[arg(long, default_value = "4MiB", value_parser = parse_bytes)]
    staging: usize,
    /// Most pages in flight.
    #[arg(long, default_value_t = 64)]
    depth: u32,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let topology = Topology::uniform(args.ranks, args.nodes)?;
    let collective = args.collective.with_root(args.root);
    let blocks = (0..args.ranks.min(2))
        .chain(collective.root())
        .map(|r| {
            collective.input_blocks(r, args.ranks).max(collective.output_blocks(r, args.ranks))
        })
        .max()
        .unwrap_or(1)
        .max(1);
    let count = args.bytes / blocks as usize / args.dtype.size();
    let limits = Limits {
        staging_bytes: args.staging as u64,
        max_depth: args.depth,
        algorithm: args.algorithm,
        ..Limits::default()
    };
    let choice = choose(collective, &topology, count, args.dtype, &Figures::default(), &limits)?;
    let plan = Plan::new(collective, &topology, choice.algorithm)?;
    print!("{}", describe(&plan, &choice));
    Ok(ExitCode::SUCCESS)
}
