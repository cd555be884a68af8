//! `stepccl plan`: what the cost model would do, for any number of ranks, on no machine at all.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::value_parser;
use stepccl::{Algorithm, Collective, DType, Topology};
use stepccl_plan::{Figures, Limits, Plan, PlanError, choose, describe_rank};

use crate::names;
use crate::outcome::{BadArguments, OutputError};

/// Largest message: what one call can have.
const MOST_BYTES: usize = 1 << 40;
/// Most staging of a communicator.
const MOST_STAGING: usize = 1 << 30;

const NOTES: &str = "\
Times are those of the cost model with typical figures of a machine, not measured; the bench shows
what is true. No plan can be faster than the lower bound. K, M and G are powers of 1024.

Examples:
  stepccl plan all_reduce --ranks 64 --nodes 8 --bytes 256M
  stepccl plan broadcast --ranks 16 --root 3 --rank 5 --algorithm tree";

/// Show the plan of a collective, its predicted time and the lower bound.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES, allow_negative_numbers = true)]
pub(crate) struct Args {
    /// all_reduce, broadcast, reduce, all_gather, reduce_scatter, all_to_all, gather, scatter or
    /// barrier
    #[arg(value_parser = names::listed_collectives(), hide_possible_values = true)]
    collective: Collective,
    /// Ranks of the communicator
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u32).range(1..=i64::from(Topology::MAX_RANKS)))]
    ranks: u32,
    /// Nodes they are on, in order and as even as possible
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    nodes: u32,
    /// Size of the message: the larger of a rank's input and output
    #[arg(long, default_value = "1M", value_parser = message, allow_hyphen_values = true)]
    bytes: usize,
    /// Type of the elements; stepccl bench --help lists them
    #[arg(short = 'd', long = "datatype", default_value = "float", value_parser = names::listed_dtype(), hide_possible_values = true)]
    dtype: DType,
    /// Root of a rooted collective
    #[arg(short = 'r', long, default_value_t = 0)]
    root: u32,
    /// Rank whose steps are shown [default: the root, else 0]
    #[arg(long)]
    rank: Option<u32>,
    /// direct, two_shot, ring, recursive, tree or hierarchical [default: what is fastest]
    #[arg(long, value_parser = names::listed_algorithms(), hide_possible_values = true)]
    algorithm: Option<Algorithm>,
    /// Staging of a rank that the plan may use, in bytes
    #[arg(long, default_value = "4M", value_parser = staging, allow_hyphen_values = true)]
    staging: usize,
    /// Most pages in flight
    #[arg(long, default_value_t = 64, value_parser = value_parser!(u32).range(1..=64))]
    depth: u32,
}

fn message(text: &str) -> Result<usize, String> {
    at_most(text, MOST_BYTES)
}

fn staging(text: &str) -> Result<usize, String> {
    at_most(text, MOST_STAGING)
}

fn at_most(text: &str, most: usize) -> Result<usize, String> {
    let bytes = names::bytes(text)?;
    if bytes > most {
        return Err(format!("must be at most {}", stepccl_plan::format_bytes(most as u64)));
    }
    Ok(bytes)
}

/// Print the plan.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let text = text(args)?;
    io::stdout().write_all(text.as_bytes()).map_err(OutputError)?;
    Ok(ExitCode::SUCCESS)
}

fn text(args: &Args) -> Result<String, BadArguments> {
    let refused = |error: PlanError| BadArguments(refusal(args, error));
    let topology = Topology::uniform(args.ranks, args.nodes).map_err(refused)?;
    if let Some(rank) = args.rank.filter(|rank| *rank >= args.ranks) {
        return Err(BadArguments(format!(
            "--rank {rank} is no rank; with --ranks {} it must be 0 to {}",
            args.ranks,
            args.ranks - 1
        )));
    }
    let collective = args.collective.with_root(args.root);
    let count = args.bytes / blocks(collective, args.ranks) / args.dtype.size();
    let limits = Limits {
        staging_bytes: args.staging as u64,
        max_depth: args.depth,
        algorithm: args.algorithm,
        ..Limits::default()
    };
    let choice = choose(collective, &topology, count, args.dtype, &Figures::default(), &limits)
        .map_err(refused)?;
    let plan = Plan::new(collective, &topology, choice.algorithm).map_err(refused)?;
    let rank = args.rank.or(collective.root()).unwrap_or(0);
    Ok(describe_rank(&plan, &choice, rank))
}

/// Blocks of the larger buffer of any rank; ranks other than the root are alike.
fn blocks(collective: Collective, ranks: u32) -> usize {
    (0..ranks.min(2))
        .chain(collective.root())
        .map(|rank| collective.input_blocks(rank, ranks).max(collective.output_blocks(rank, ranks)))
        .max()
        .unwrap_or(1)
        .max(1) as usize
}

/// Why there is no plan, one algorithm a line.
fn refusal(args: &Args, error: PlanError) -> String {
    let PlanError::NothingFits { collective, reason } = error else { return error.to_string() };
    let staging = stepccl_plan::format_bytes(args.staging as u64);
    let mut text = format!("no plan for {collective} fits into --staging of {staging}; give more");
    for part in reason.split("; ") {
        // A reason may hold the separator itself.
        let starts =
            |a: &Algorithm| part.strip_prefix(a.name()).is_some_and(|p| p.starts_with(':'));
        text.push_str(if Algorithm::ALL.iter().any(starts) { "\n  " } else { "; " });
        text.push_str(part);
    }
    text
}
