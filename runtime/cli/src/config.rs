//! `stepccl config`: every setting, its value and where that comes from.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;
use stepccl::{Config, unknown_variables};

use crate::outcome::OutputError;

const EXAMPLES: &str = "\
Examples:
  stepccl config
  STEPCCL_TIMEOUT=60 stepccl config --json";

/// Show every setting, its value and where that comes from.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Shown {
    settings: Vec<Row>,
    /// Variables that are no settings.
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    value: String,
    source: &'static str,
    meaning: &'static str,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let settings = Config::from_env()?.settings()?;
    let settings = settings
        .into_iter()
        .map(|s| Row { name: s.name, value: s.value, source: s.source.name(), meaning: s.meaning })
        .collect();
    let shown = Shown { settings, warnings: unknown_variables() };
    let text = if args.json { serde_json::to_string_pretty(&shown)? + "\n" } else { table(&shown) };
    io::stdout().lock().write_all(text.as_bytes()).map_err(OutputError)?;
    Ok(ExitCode::SUCCESS)
}

fn table(shown: &Shown) -> String {
    let wide = |text: fn(&Row) -> &str| {
        shown.settings.iter().map(|row| text(row).chars().count()).max().unwrap_or(0)
    };
    let (name, source) = (wide(|row| row.name), wide(|row| row.source));
    let rows = shown.settings.iter().map(|row| {
        let value = row.value.replace('`', "");
        format!("{:name$}  {:source$}  {value}\n", row.name, row.source)
    });
    let warnings = shown.warnings.iter().map(|warning| format!("warning: {warning}\n"));
    rows.chain(warnings).collect()
}
