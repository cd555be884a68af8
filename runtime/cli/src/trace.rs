//! `stepccl trace`: the flight records as a trace for Perfetto.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use stepccl::flight_record::{scan, trace::Trace};

use crate::outcome::{BadArguments, say};
use crate::status::{find, print};

/// Between two looks at the records while following.
const LOOK: Duration = Duration::from_millis(50);
/// Longest time to follow.
const MAX_SECONDS: f64 = 3600.0;

const NOTES: &str = "\
Load the file at https://ui.perfetto.dev or in chrome://tracing. Times are CLOCK_REALTIME, with the
zero of torch's profiler: a trace of torch.profiler can be loaded beside it.

Examples:
  stepccl trace --all -o trace.json
  stepccl trace --pid 4711 --seconds 5 -o trace.json

Exit codes: 0 written, 1 no record was found or the file cannot be written, 2 bad arguments.";

/// Write the operations of running jobs as a trace.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub(crate) struct Args {
    /// Only this process
    #[arg(long, value_name = "PID", conflicts_with = "all")]
    pid: Option<u32>,
    /// All processes; the default
    #[arg(long)]
    all: bool,
    /// Follow for so long; 0: write what the records hold now
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    seconds: f64,
    /// File to write, - for standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

/// Write it.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    if !(0.0..=MAX_SECONDS).contains(&args.seconds) {
        let text = format!("--seconds {}: must be from 0 to {MAX_SECONDS}", args.seconds);
        return Err(BadArguments(text).into());
    }
    let until = Instant::now() + Duration::from_secs_f64(args.seconds);
    let mut trace = Trace::default();
    trace.add(&find(args.pid)?);
    while Instant::now() < until {
        std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
        // Processes come and go meanwhile.
        trace.add(&scan(args.pid).found);
    }
    let text = format!("{}\n", trace.to_json());
    if args.output.as_os_str() == "-" {
        print(&text)?;
    } else {
        fs::write(&args.output, text)
            .map_err(|error| format!("{}: {error}", args.output.display()))?;
        say(format_args!("{} operations in {}", trace.operations(), args.output.display()));
    }
    Ok(ExitCode::SUCCESS)
}
