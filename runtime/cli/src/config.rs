//! `stepccl config`: every setting, its value and where that comes from.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;
use stepccl::Review;

use crate::outcome::{OutputError, printable, say};

const NOTES: &str = "\
Every bad value is told, not only the first. Documentation/environment.md has the whole table.

Examples:
  stepccl config
  STEPCCL_TIMEOUT=60 stepccl config --json

Exit codes: 0 every value is good, 1 a value is bad, 2 bad arguments.";

/// Show every setting, its value and where that comes from.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Shown {
    settings: Vec<Row>,
    /// Bad values, with the rule that they break.
    errors: Vec<String>,
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
    let Review { settings, errors, warnings } = Review::of_process();
    let settings = settings
        .into_iter()
        .map(|s| Row { name: s.name, value: s.value, source: s.source.name(), meaning: s.meaning })
        .collect();
    let errors = errors.iter().map(ToString::to_string).collect();
    let shown = Shown { settings, errors, warnings };
    let text = if args.json { serde_json::to_string_pretty(&shown)? + "\n" } else { table(&shown) };
    io::stdout().lock().write_all(text.as_bytes()).map_err(OutputError)?;
    for error in shown.errors.iter().filter(|_| !args.json) {
        say(format_args!("stepccl: {}", printable(error)));
    }
    Ok(if shown.errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn table(shown: &Shown) -> String {
    let wide = |text: fn(&Row) -> &str| {
        shown.settings.iter().map(|row| text(row).chars().count()).max().unwrap_or(0)
    };
    let (name, source) = (wide(|row| row.name), wide(|row| row.source));
    let rows = shown.settings.iter().map(|row| {
        let value = printable(&row.value.replace('`', ""));
        format!("{:name$}  {:source$}  {value}\n", row.name, row.source)
    });
    let warnings =
        shown.warnings.iter().map(|warning| format!("warning: {}\n", printable(warning)));
    rows.chain(warnings).collect()
}
