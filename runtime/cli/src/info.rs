//! `stepccl info`: what to paste into a report.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use serde::Serialize;
use stepccl::{Algorithm, Communicator, Config, DType, MemoryStore, ReduceOp, Stats};

use crate::memory;
use crate::outcome::OutputError;

/// How long the engine may take to come up.
const LIMIT: Duration = Duration::from_secs(10);

const NOTES: &str = "\
The host engine is tried: two ranks in this process meet, and its figures are those they measured.

Example:
  stepccl info --json";

/// Show what this build and this machine have.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Info {
    version: &'static str,
    architecture: &'static str,
    kernel: String,
    cores: usize,
    memory_available_bytes: Option<u64>,
    /// `None`: no limit.
    memlock_bytes: Option<u64>,
    engines: Vec<Engine>,
    dtypes: Vec<&'static str>,
    operations: Vec<&'static str>,
    algorithms: Vec<&'static str>,
    environment: Vec<(String, String)>,
}

#[derive(Serialize)]
struct Engine {
    name: &'static str,
    usable: bool,
    /// What it is, or why it is not usable.
    note: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<Measured>,
}

/// A communicator of two ranks of this process.
#[derive(Serialize)]
struct Measured {
    staging_bytes_a_rank: usize,
    copy_gb_per_s: f64,
    add_gb_per_s: f64,
}

/// Print it.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let info = collect();
    let mut out = io::stdout().lock();
    let written = if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&info)?)
    } else {
        print(&mut out, &info)
    };
    written.map_err(OutputError)?;
    Ok(ExitCode::SUCCESS)
}

fn collect() -> Info {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    Info {
        version: env!("CARGO_PKG_VERSION"),
        architecture: std::env::consts::ARCH,
        kernel: kernel.map_or_else(|_| "unknown".to_owned(), |s| s.trim().to_owned()),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_available_bytes: memory::available(),
        memlock_bytes: memlock(),
        engines: vec![host(), device(), absent("cuda"), absent("verbs")],
        dtypes: DType::ALL.iter().map(|d| d.name()).collect(),
        operations: ReduceOp::ALL.iter().map(|o| o.name()).collect(),
        algorithms: Algorithm::ALL.iter().map(|a| a.name()).collect(),
        environment: environment(),
    }
}

fn host() -> Engine {
    let name = "host";
    match try_host() {
        Ok(stats) => Engine {
            name,
            usable: true,
            note: format!("threads over shared memory; adds with {}", stepccl::simd_level()),
            measured: Some(Measured {
                staging_bytes_a_rank: stats.staging_bytes,
                copy_gb_per_s: stats.figures.copy_bytes_per_second / 1e9,
                add_gb_per_s: stats.figures.reduce_bytes_per_second / 1e9,
            }),
        },
        Err(error) => Engine { name, usable: false, note: error.to_string(), measured: None },
    }
}

/// Two ranks of this process meet; what rank 0 knows then.
fn try_host() -> Result<Stats, stepccl::Error> {
    let config = Config { timeout: LIMIT, start_timeout: LIMIT, ..Config::from_env()? };
    let store = MemoryStore::new();
    let rank = |rank| -> Result<Stats, stepccl::Error> {
        let communicator = Communicator::new(&store, "info.0", rank, 2, &config)?;
        communicator.barrier()?;
        Ok(communicator.stats())
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| rank(1));
        let own = rank(0);
        match other.join() {
            Ok(other) => other.and(own),
            // It would be a fault of the library; the standard library has told it.
            Err(_) => own,
        }
    })
}

fn device() -> Engine {
    let there = std::path::Path::new("/dev/dma_device").exists();
    let first = if there { "/dev/dma_device is there" } else { "no /dev/dma_device" };
    let note = format!("{first}; this build has no client for it");
    Engine { name: "device", usable: false, note, measured: None }
}

fn absent(name: &'static str) -> Engine {
    Engine { name, usable: false, note: "not in this build".to_owned(), measured: None }
}

fn memlock() -> Option<u64> {
    let soft = getrlimit(Resource::RLIMIT_MEMLOCK).map_or(0, |(soft, _)| soft);
    (soft != RLIM_INFINITY).then_some(soft)
}

/// `STEPCCL_` variables of this process; the secret is not shown.
fn environment() -> Vec<(String, String)> {
    let mut all: Vec<_> = std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
        .filter(|(name, _)| name.starts_with("STEPCCL_"))
        .map(|(name, value)| {
            let secret = name == "STEPCCL_SECRET";
            let value = if secret { "(set)".into() } else { value.to_string_lossy().into_owned() };
            (name, value)
        })
        .collect();
    all.sort();
    all
}

fn print(out: &mut impl Write, info: &Info) -> io::Result<()> {
    let bytes = |bytes: Option<u64>, none: &str| {
        bytes.map_or_else(|| none.into(), stepccl_plan::format_bytes)
    };
    writeln!(out, "stepccl     {}, {}", info.version, info.architecture)?;
    writeln!(out, "kernel      {}, {} cores", info.kernel, info.cores)?;
    writeln!(out, "memory      {} available", bytes(info.memory_available_bytes, "unknown"))?;
    writeln!(out, "memlock     {}", bytes(info.memlock_bytes, "unlimited"))?;
    for engine in &info.engines {
        let usable = if engine.usable { "usable" } else { "-" };
        writeln!(out, "engine      {:<8}{usable:<8}{}", engine.name, engine.note)?;
        if let Some(measured) = &engine.measured {
            writeln!(
                out,
                "                            copy {:.1} GB/s, add {:.1} GB/s, staging {} a rank of two",
                measured.copy_gb_per_s,
                measured.add_gb_per_s,
                stepccl_plan::format_bytes(measured.staging_bytes_a_rank as u64)
            )?;
        }
    }
    writeln!(out, "types       {}", info.dtypes.join(" "))?;
    writeln!(out, "operations  {}", info.operations.join(" "))?;
    writeln!(out, "algorithms  {}", info.algorithms.join(" "))?;
    if info.environment.is_empty() {
        writeln!(out, "environment no STEPCCL_ variable is set")?;
    }
    for (name, value) in &info.environment {
        // A value may hold what would change the terminal.
        writeln!(out, "environment {name}={}", value.escape_debug())?;
    }
    Ok(())
}
