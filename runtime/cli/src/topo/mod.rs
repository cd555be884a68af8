//! `stepccl topo`: what this machine is made of, and what lies between its parts.

mod json;
mod parts;
mod table;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueHint;
use stepccl_topology::Machine;

use crate::outcome::BadArguments;
use crate::status::print;

const NOTES: &str = "\
The words between two parts are those of nvidia-smi topo -m, nearest first: SELF, PIX, PXB, PHB,
NODE, SYS; the legend under the matrix explains them. A NUMA node stands for its memory.

Examples:
  stepccl topo
  stepccl topo --json
  stepccl topo --sysfs /tmp/copy/sys";

/// Show NUMA nodes, GPUs, network adapters and DMA engines, and what lies between them.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub(crate) struct Args {
    /// Read this folder, a copy of /sys of another machine
    #[arg(long, value_name = "FOLDER", default_value = "/sys", value_hint = ValueHint::DirPath)]
    sysfs: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Print it.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    if !args.sysfs.is_dir() {
        return Err(BadArguments(format!(
            "--sysfs {} is no folder that can be read; leave it out for this machine",
            args.sysfs.display()
        ))
        .into());
    }
    let machine = Machine::read(&args.sysfs);
    let text = if args.json {
        serde_json::to_string_pretty(&json::object(&machine))? + "\n"
    } else {
        table::text(&machine)
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
