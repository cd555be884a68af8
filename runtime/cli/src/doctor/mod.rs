//! `stepccl doctor`: what this machine can do, and what to do where it cannot.

mod checks;
mod clock;
mod cpus;
mod descriptors;
mod dev_shm;
mod dma_device;
mod finding;
mod gpus;
mod huge_pages;
mod memlock;
mod namespaces;
mod network;
mod numa;
mod rdma;
mod scene;
mod shared_memory;
mod single_copy;
mod variables;

use std::error::Error;
use std::process::ExitCode;

use clap::value_parser;
use serde_json::json;

use crate::status::print;
use finding::{Finding, Verdict};
use scene::Scene;

const NOTES: &str = "\
ok: as it should be. warn: works, but slower or less than it could. fail: something will not work.
not here: this machine does not have it and can do without. Behind -> stands a command that mends it;
words behind # say when it is the right one. Nothing is changed; all checks end within 5 seconds.

Examples:
  stepccl doctor
  stepccl doctor --ranks 8 --json

Exit codes: 0 nothing fails, 1 something does, 2 bad arguments.";

/// Check what this machine can do, with the fix of each thing that it cannot.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub(crate) struct Args {
    /// Ranks that are to run on this machine
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u32).range(1..=1024))]
    ranks: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Print it; or be the child of a check.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    if let Some(code) = single_copy::child()? {
        return Ok(code);
    }
    let found = checks::all(&Scene::here(args.ranks));
    let text = if args.json { json(&found)? } else { table(&found) };
    print(&text)?;
    let failed = count(&found, Verdict::Fail);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn count(found: &[(&str, Finding)], verdict: Verdict) -> usize {
    found.iter().filter(|(_, finding)| finding.verdict == verdict).count()
}

fn json(found: &[(&str, Finding)]) -> serde_json::Result<String> {
    let checks: Vec<_> = found
        .iter()
        .map(|(name, Finding { verdict, fact, fix })| {
            json!({ "check": name, "verdict": verdict.name(), "fact": fact, "fix": fix })
        })
        .collect();
    let failed = count(found, Verdict::Fail);
    Ok(serde_json::to_string_pretty(&json!({ "checks": checks, "failed": failed }))? + "\n")
}

fn table(found: &[(&str, Finding)]) -> String {
    let wide = found.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, Finding { verdict, fact, fix }) in found {
        text += &format!("{verdict:8}  {name:wide$}  {fact}\n");
        if let Some(fix) = fix {
            text += &format!("{:8}  {:wide$}  -> {fix}\n", "", "");
        }
    }
    let counts = Verdict::ALL.map(|v| format!("{} {v}", count(found, v)));
    text + &format!("\n{}\n", counts.join(", "))
}
