//! The `stepccl` command.

mod bench;
mod info;
mod launch;
mod plan;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Collectives on DMA engines: measure them, look at their plans, see what this machine has.
#[derive(Debug, Parser)]
#[command(name = "stepccl", version, propagate_version = true)]
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
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Bench(args) => bench::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Info(args) => info::run(&args),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("stepccl: {error}");
            ExitCode::FAILURE
        }
    }
}
