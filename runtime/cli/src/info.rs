//! `stepccl info`: what to paste into a report.

use std::error::Error;
use std::process::ExitCode;

use serde::Serialize;

/// Show what this build and this machine have.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Info {
    version: &'static str,
    engines: Vec<Engine>,
    dtypes: Vec<&'static str>,
    operations: Vec<&'static str>,
    algorithms: Vec<&'static str>,
    cores: usize,
    kernel: String,
    memlock_bytes: Option<u64>,
    environment: Vec<(String, String)>,
}

#[derive(Serialize)]
struct Engine {
    name: &'static str,
    usable: bool,
    reason: String,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let info = collect();
    if args.json {
        println!("{}", serde_json::to_string_pretty(&info)?);
    } else {
        print(&info);
    }
    Ok(ExitCode::SUCCESS)
}

fn collect() -> Info {
    let device = std::path::Path::new("/dev/dma_device").exists();
    Info {
        version: env!("CARGO_PKG_VERSION"),
        engines: vec![
            Engine {
                name: "host",
                usable: true,
                reason: format!("threads over shared memory; adds with {}", stepccl::simd_level()),
            },
            Engine {
                name: "device",
                usable: false,
                reason: if device {
                    "/dev/dma_device is there; this build has no client for it".to_owned()
                } else {
                    "no /dev/dma_device, and this build has no client for it".to_owned()
                },
            },
            Engine { name: "cuda", usable: false, reason: "not in this build".to_owned() },
            Engine { name: "verbs", usable: false, reason: "not in this build".to_owned() },
        ],
        dtypes: stepccl::DType::ALL.iter().map(|d| d.name()).collect(),
        operations: stepccl::ReduceOp::ALL.iter().map(|o| o.name()).collect(),
        algorithms: stepccl::Algorithm::ALL.iter().map(|a| a.name()).collect(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .map_or_else(|_| "unknown".to_owned(), |s| s.trim().to_owned()),
        memlock_bytes: memlock(),
        environment: environment(),
    }
}

fn memlock() -> Option<u64> {
    use nix::sys::resource::{Resource, getrlimit};
    getrlimit(Resource::RLIMIT_MEMLOCK).ok().map(|(soft, _)| soft)
}

/// Variables of this process that StepCCL reads; the secret is not shown.
fn environment() -> Vec<(String, String)> {
    let mut all: Vec<_> = std::env::vars_os()
        .filter_map(|(k, v)| Some((k.into_string().ok()?, v.to_string_lossy().into_owned())))
        .filter(|(k, _)| k.starts_with("STEPCCL_"))
        .map(|(k, v)| if k == "STEPCCL_SECRET" { (k, "(set)".to_owned()) } else { (k, v) })
        .collect();
    all.sort();
    all
}

fn print(info: &Info) {
    println!("stepccl     {}", info.version);
    println!("kernel      {}, {} cores", info.kernel, info.cores);
    match info.memlock_bytes {
        Some(nix::libc::RLIM_INFINITY) => println!("memlock     unlimited"),
        Some(bytes) => println!("memlock     {bytes} bytes"),
        None => println!("memlock     unknown"),
    }
    for engine in &info.engines {
        let usable = if engine.usable { "usable" } else { "-" };
        println!("engine      {:8}{:8}{}", engine.name, usable, engine.reason);
    }
    println!("types       {}", info.dtypes.join(" "));
    println!("operations  {}", info.operations.join(" "));
    println!("algorithms  {}", info.algorithms.join(" "));
    if info.environment.is_empty() {
        println!("environment no STEPCCL_ variable is set");
    }
    for (name, value) in &info.environment {
        println!("environment {name}={value}");
    }
}
