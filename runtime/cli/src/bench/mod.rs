//! `stepccl bench`: the time of a collective by size, as nccl-tests shows it.

mod data;
mod report;
mod sizes;
mod timing;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use stepccl::{Collective, Communicator, Config, DType, FileStore, ReduceOp, parse_size};

use crate::launch;

/// Time a collective over a range of sizes.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// all_reduce, broadcast, reduce, all_gather, reduce_scatter, all_to_all, gather, scatter or
    /// barrier.
    #[arg(value_parser = parse_collective)]
    pub collective: Collective,
    /// Ranks, each a process of this machine.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub ranks: u32,
    /// Smallest size: the larger of a rank's input and output.
    #[arg(short = 'b', long = "minbytes", default_value = "8", value_parser = parse_bytes)]
    pub min: usize,
    /// Largest size.
    #[arg(short = 'e', long = "maxbytes", default_value = "32M", value_parser = parse_bytes)]
    pub max: usize,
    /// Add this many bytes from size to size, instead of multiplying.
    #[arg(short = 'i', long = "stepbytes", value_parser = parse_bytes, conflicts_with = "factor")]
    pub step: Option<usize>,
    /// Multiply by this from size to size.
    #[arg(short = 'f', long = "stepfactor", default_value_t = 2)]
    pub factor: usize,
    /// Timed calls of each size.
    #[arg(short = 'n', long = "iters", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: u32,
    /// Calls of each size before the timed ones.
    #[arg(short = 'w', long = "warmup_iters", default_value_t = 5)]
    pub warmup: u32,
    /// Check the results: 1 yes, 0 no.
    #[arg(short = 'c', long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub check: u8,
    /// sum, max, min or avg.
    #[arg(short = 'o', long = "op", default_value = "sum", value_parser = parse_op)]
    pub op: ReduceOp,
    /// float, double, half, bfloat16, int32, int64 or uint8.
    #[arg(short = 'd', long = "datatype", default_value = "float", value_parser = parse_dtype)]
    pub dtype: DType,
    /// Root of a rooted collective.
    #[arg(short = 'r', long, default_value_t = 0)]
    pub root: u32,
    /// Seconds an operation may take.
    #[arg(short = 'T', long, default_value_t = 120.0)]
    pub timeout: f64,
    /// Leave the placement of ranks on cores to the system.
    #[arg(long)]
    pub no_bind: bool,
    /// Print one JSON object a size.
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn parse_collective(name: &str) -> Result<Collective, String> {
    let plain = name.to_ascii_lowercase().replace('-', "_");
    // nccl-tests writes its programs without underscores.
    let found = Collective::ALL
        .into_iter()
        .find(|c| c.name() == plain || c.name().replace('_', "") == plain);
    found.ok_or_else(|| {
        format!("must be one of {}", Collective::ALL.map(Collective::name).join(", "))
    })
}

pub(crate) fn parse_dtype(name: &str) -> Result<DType, String> {
    DType::ALL
        .into_iter()
        .find(|d| d.name() == name)
        .ok_or_else(|| format!("must be one of {}", DType::ALL.map(DType::name).join(", ")))
}

fn parse_op(name: &str) -> Result<ReduceOp, String> {
    ReduceOp::ALL
        .into_iter()
        .find(|o| o.name() == name)
        .ok_or_else(|| format!("must be one of {}", ReduceOp::ALL.map(ReduceOp::name).join(", ")))
}

pub(crate) fn parse_bytes(text: &str) -> Result<usize, String> {
    parse_size("size", text).map_err(|error| error.to_string())
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let sizes = sizes::sizes(args)?;
    if args.root >= args.ranks {
        return Err(
            format!("--root {}: must be less than --ranks {}", args.root, args.ranks).into()
        );
    }
    let Some(rank) = std::env::var(launch::RANK).ok().and_then(|r| r.parse::<u32>().ok()) else {
        return launch::ranks(args.ranks);
    };
    let store = std::env::var_os(launch::STORE)
        .ok_or_else(|| format!("{} is set without {}", launch::RANK, launch::STORE))?;
    if !args.no_bind {
        bind(rank, args.ranks);
    }
    let mut config = Config::from_env()?;
    config.timeout = Duration::try_from_secs_f64(args.timeout)
        .map_err(|_| format!("--timeout {}: must be seconds above 0", args.timeout))?;
    let store = FileStore::open(std::path::Path::new(&store))?;
    let communicator = Communicator::new(&store, "bench.0", rank, args.ranks, &config)?;
    let mut wrong = 0;
    if rank == 0 {
        report::header(args, &communicator);
    }
    for size in sizes {
        let row = timing::row(args, &communicator, size)?;
        wrong += row.wrong();
        if rank == 0 {
            report::row(args, &row);
        }
    }
    communicator.barrier()?;
    if rank == 0 {
        report::footer(args, &communicator, wrong);
    }
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Keep a rank on a core of its own, where there are enough.
fn bind(rank: u32, ranks: u32) {
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;
    let me = Pid::from_raw(0);
    let Ok(allowed) = sched_getaffinity(me) else { return };
    let cores: Vec<usize> =
        (0..CpuSet::count()).filter(|c| allowed.is_set(*c).unwrap_or(false)).collect();
    let Some(core) = cores.get(rank as usize).filter(|_| cores.len() >= ranks as usize) else {
        return;
    };
    let mut set = CpuSet::new();
    if set.set(*core).is_ok() {
        // Where it is refused, the figures are those of the system's placement.
        let _ = sched_setaffinity(me, &set);
    }
}
