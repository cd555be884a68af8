//! The `stepccl` command.

mod bench;
mod completions;
mod config;
mod doctor;
mod format;
mod info;
mod launch;
mod listed;
mod man;
mod memory;
mod names;
mod outcome;
mod plan;
mod status;
mod top;
mod topo;
mod trace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  stepccl bench all_reduce -b 8 -e 256M -f 2 -n 20
  stepccl plan all_reduce --ranks 64 --nodes 8 --bytes 256M
  stepccl info --json

A job does not start or is slow: begin with stepccl doctor. A job hangs: stepccl status.

Exit codes: 0 done, 1 failed or wrong results, 2 bad arguments, 128 + n ended by signal n
(141: the reader of the output went away).";

/// Collectives on DMA engines: measure them, look at their plans, see what this machine has.
#[derive(Debug, Parser)]
#[command(name = "stepccl", version, propagate_version = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Time a collective over a range of sizes; flags and columns are those of nccl-tests.
    Bench(bench::Args),
    /// Show the plan of a collective, its predicted time and the lower bound.
    Plan(plan::Args),
    /// Show what this build and this machine have.
    Info(info::Args),
    /// Check what this machine can do, with the fix of each thing that it cannot.
    Doctor(doctor::Args),
    /// Show NUMA nodes, GPUs, network adapters and DMA engines, and what lies between them.
    Topo(topo::Args),
    /// Show where each rank of the running jobs is, and which one is behind.
    Status(status::Args),
    /// Watch what each rank of the running jobs does.
    Top(top::Args),
    /// Write the operations of running jobs as a trace for Perfetto.
    Trace(trace::Args),
    /// Show every setting, its value and where that comes from.
    Config(config::Args),
    /// Write what a shell needs to complete this command.
    Completions(completions::Args),
    /// Write the manual pages.
    Man(man::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Bench(args) => bench::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Topo(args) => topo::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    };
    result.unwrap_or_else(|error| outcome::failure(error.as_ref()))
}
