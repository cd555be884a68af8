//! The arguments of `stepccl bench`.

use std::time::Duration;

use clap::value_parser;
use stepccl::{DType, ReduceOp};

use super::case::Case;
use super::operation::{MEMBERS, Operation};
use super::sizes::largest;
use crate::names::{self, Selection};
use crate::outcome::BadArguments;

const NOTES: &str = "\
A time is the mean of -n calls, averaged over the ranks. algbw is size / time, busbw is that times
the factor of nccl-tests, so that it can be held against the rate of the link. A size is the larger
of a rank's input and output, cut down to whole elements. K, M and G are powers of 1024.
Two forms are measured where the operation has both: with an output apart, and in place.
Operations: all_reduce, broadcast, reduce, all_gather, reduce_scatter, all_to_all, gather, scatter,
barrier; sendrecv (every rank, both ways at once), ping_pong (ranks 0 and 1, one way); group (many
all_reduces in one group, beside a single one of their total size).
Types: float, double, half, bfloat16, f8e4m3, f8e5m2, int8, uint8, int32, uint32, int64, uint64, bool,
complex64, complex128. Combined by: sum, prod, max, min, avg, mulsum, band, bor, bxor.
Started by mpirun, srun or torchrun, this process is one rank of theirs (see --here).
On several machines ranks meet at MASTER_ADDR and MASTER_PORT; srun needs neither.
The STEPCCL_ variables of the environment apply.

Examples:
  stepccl bench all_reduce -b 8 -e 256M -f 2 -n 20
  stepccl bench all_gather --ranks 4 -b 1M -e 1M -d bfloat16 --json
  stepccl bench ping_pong -b 8 -e 8 -n 10000 --percentiles
  stepccl bench group --members 1000 -b 1M -e 1M";

/// Time a collective over a range of sizes, and check its results.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = NOTES, allow_negative_numbers = true)]
pub(crate) struct Args {
    /// What is timed, such as all_reduce; the whole list is below
    #[arg(value_name = "OPERATION", value_parser = Operation::listed(), hide_possible_values = true)]
    pub operation: Operation,
    /// Ranks of this machine; a launcher's number comes first
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u32).range(1..=1024))]
    pub ranks: u32,
    /// Smallest size in bytes
    #[arg(short = 'b', long = "minbytes", default_value = "8", value_parser = names::bytes, allow_hyphen_values = true)]
    pub min: usize,
    /// Largest size in bytes
    #[arg(short = 'e', long = "maxbytes", default_value = "32M", value_parser = names::bytes, allow_hyphen_values = true)]
    pub max: usize,
    /// Add this many bytes from size to size, instead of multiplying
    #[arg(short = 'i', long = "stepbytes", value_parser = names::step, allow_hyphen_values = true, conflicts_with = "factor")]
    pub step: Option<usize>,
    /// Multiply by this from size to size
    #[arg(short = 'f', long = "stepfactor", default_value = "2", value_parser = names::factor)]
    pub factor: usize,
    /// Timed calls of each size
    #[arg(short = 'n', long = "iters", default_value_t = 20, value_parser = value_parser!(u32).range(1..))]
    pub iterations: u32,
    /// Calls of each size before the timed ones
    #[arg(short = 'w', long = "warmup_iters", default_value_t = 5)]
    pub warmup: u32,
    /// Check the results: 1 yes, 0 no
    #[arg(short = 'c', long, default_value_t = 1, value_parser = value_parser!(u8).range(0..=1))]
    pub check: u8,
    /// How elements are combined, or all
    #[arg(short = 'o', long = "op", default_value = "sum", value_parser = names::listed_ops(), hide_possible_values = true)]
    pub ops: Selection<ReduceOp>,
    /// Type of the elements, or all
    #[arg(short = 'd', long = "datatype", default_value = "float", value_parser = names::listed_dtypes(), hide_possible_values = true)]
    pub dtypes: Selection<DType>,
    /// Root of a rooted collective
    #[arg(short = 'r', long, default_value_t = 0)]
    pub root: u32,
    /// All-reduces of a group, which share the size (bench group)
    #[arg(long, default_value_t = MEMBERS, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub members: u32,
    /// Time over ranks: 0 that of rank 0, 1 average, 2 smallest, 3 largest
    #[arg(short = 'a', long, default_value_t = 1, value_parser = value_parser!(u8).range(0..=3))]
    pub average: u8,
    /// Seconds an operation may take [default: STEPCCL_TIMEOUT, else 120]
    #[arg(short = 'T', long, value_parser = names::seconds)]
    pub timeout: Option<Duration>,
    /// Leave the placement of ranks on cores to the system
    #[arg(long)]
    pub no_bind: bool,
    /// Start the ranks here, even where mpirun, srun or torchrun has started this process
    #[arg(long)]
    pub here: bool,
    /// Time each call, and show where the times lie: p50, p90, p99, smallest, largest
    #[arg(long)]
    pub percentiles: bool,
    /// Print one JSON object a size
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Refuse arguments that do not go together.
    ///
    /// # Errors
    ///
    /// [`BadArguments`] with the values and the way out.
    pub fn check(&self) -> Result<(), BadArguments> {
        let Self { min, max, root, ranks, .. } = self;
        if min > max {
            return Err(BadArguments(format!(
                "--minbytes {min} is more than --maxbytes {max}; give both, the smallest first (without them they are 8 and 32M)"
            )));
        }
        if matches!(self.operation, Operation::SendRecv | Operation::PingPong)
            && *ranks < Operation::MESSAGE_RANKS
        {
            return Err(BadArguments(format!(
                "{} between {ranks} rank(s): messages need at least {}; give more --ranks",
                self.operation,
                Operation::MESSAGE_RANKS
            )));
        }
        if self.operation.root().is_some() && root >= ranks {
            return Err(BadArguments(format!(
                "--root {root} is no rank; with --ranks {ranks} it must be 0 to {}",
                ranks - 1
            )));
        }
        if let Operation::Group { .. } = self.operation
            && let Some(case) = Case::all(self).into_iter().find(|c| largest(self, *c).count == 0)
        {
            return Err(BadArguments(format!(
                "no size up to --maxbytes {max} has an element of {} for each of --members {}; give a larger -e or fewer --members",
                case.dtype, self.members
            )));
        }
        if let ([dtype], true) = (&self.dtypes.0[..], Case::all(self).is_empty()) {
            let ops: Vec<_> = self.ops.0.iter().map(|op| op.name()).collect();
            let possible: Vec<_> = ReduceOp::all_of(*dtype).map(ReduceOp::name).collect();
            return Err(BadArguments(format!(
                "--op {} of --datatype {dtype}: {dtype} elements are combined by {}",
                ops.join(", "),
                possible.join(", ")
            )));
        }
        Ok(())
    }
}
