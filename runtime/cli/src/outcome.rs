//! How the command ends: exit codes, and the last words on standard error.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

/// Exit code of bad arguments, as clap has it.
const USAGE: u8 = 2;
/// Exit code where the reader of the output went away: as if ended by SIGPIPE.
pub(crate) const OUTPUT_CLOSED: u8 = 128 + 13;

/// Arguments that each alone are good and together are not.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadArguments(pub String);

/// The output could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the output could not be written: {0}")]
pub(crate) struct OutputError(#[from] pub io::Error);

/// Say what went wrong, and which exit code that is.
pub(crate) fn failure(error: &(dyn Error + 'static)) -> ExitCode {
    if output_closed(error) {
        return ExitCode::from(OUTPUT_CLOSED);
    }
    say(format_args!("stepccl: {error}"));
    if error.is::<BadArguments>() { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
}

/// The same for a rank that a command started.
pub(crate) fn failure_of_rank(rank: u32, error: &(dyn Error + 'static)) -> ExitCode {
    if output_closed(error) {
        return ExitCode::from(OUTPUT_CLOSED);
    }
    say(format_args!("stepccl: rank {rank}: {error}"));
    ExitCode::FAILURE
}

/// A line on standard error. Where that is closed, there is nobody to tell.
pub(crate) fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// A text that others wrote, with what would change the terminal made visible.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| if c.is_control() { c.escape_debug().collect() } else { vec![c] })
        .collect()
}

fn output_closed(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref().is_some_and(|OutputError(io)| io.kind() == io::ErrorKind::BrokenPipe)
}
