//! Where log lines go: standard error, or the file that `STEPCCL_LOG_FILE` names.
//!
//! The libraries log through the `log` crate. An application that has its own logger gets the
//! lines; otherwise this sink is installed with the first communicator.

use std::fs::File;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::{Config, Error, unknown_variables};

/// Operations in a dump that a signal asked for.
const DUMPED: usize = 32;

/// The one sink of the process.
static SINK: Sink = Sink { file: OnceLock::new() };

struct Sink {
    /// None: standard error.
    file: OnceLock<Option<File>>,
}

/// The level of that name; unset: warnings.
pub(crate) fn level(name: Option<&str>) -> Result<LevelFilter, Error> {
    match name.map(str::to_ascii_lowercase).as_deref() {
        None | Some("" | "warn") => Ok(LevelFilter::Warn),
        Some("off") => Ok(LevelFilter::Off),
        Some("error") => Ok(LevelFilter::Error),
        Some("info") => Ok(LevelFilter::Info),
        Some("debug") => Ok(LevelFilter::Debug),
        Some("trace") => Ok(LevelFilter::Trace),
        Some(_) => Err(Error::invalid(
            "log",
            name.unwrap_or_default(),
            "must be one of off, error, warn, info, debug, trace",
        )),
    }
}

/// Install the sink, unless the application has one, and listen for the signal that dumps.
/// Only the first call of a process does anything.
pub(crate) fn install(config: &Config, rank: u32) -> Result<(), Error> {
    static DONE: OnceLock<()> = OnceLock::new();
    let level = level(config.log.as_deref())?;
    if DONE.set(()).is_err() {
        return Ok(());
    }
    let mut problem = None;
    if log::set_logger(&SINK).is_ok() {
        let file = config.log_file.as_deref().filter(|pattern| !pattern.is_empty());
        let file = file.map(|pattern| expand(pattern, rank)).and_then(|path| {
            let opened = File::options().append(true).create(true).open(&path);
            opened.map_err(|error| problem = Some(format!("{path}: {error}"))).ok()
        });
        let _ = SINK.file.set(file);
        log::set_max_level(level);
    } else if config.log.is_some() || config.log_file.is_some() {
        log::warn!("the application has a logger, so STEPCCL_LOG and STEPCCL_LOG_FILE do nothing");
    }
    if let Some(problem) = problem {
        log::warn!("STEPCCL_LOG_FILE cannot be written, logging here: {problem}");
    }
    // Here and not where the variables are read: before there is a sink, nobody hears of it.
    for line in unknown_variables() {
        log::warn!("{line}");
    }
    // `check` has refused what is none.
    if let Ok(Some(signal)) = stepccl_flight::dump_signal(config.dump_signal.as_deref())
        && let Err(error) = stepccl_flight::dump_on(signal, dump)
    {
        log::warn!("no dump by signal: {error}");
    }
    Ok(())
}

/// Log all records of the process: somebody asked for it, so it is said at any level but `off`.
fn dump() {
    for line in stepccl_flight::table::own(DUMPED).lines() {
        log::error!("{line}");
    }
}

/// `%h` the host, `%p` the process, `%r` the rank, `%%` a percent sign.
pub(crate) fn expand(pattern: &str, rank: u32) -> String {
    let mut path = String::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        match (c, if c == '%' { rest.next() } else { None }) {
            ('%', Some('h')) => path += host(),
            ('%', Some('p')) => path += &std::process::id().to_string(),
            ('%', Some('r')) => path += &rank.to_string(),
            ('%', Some('%') | None) => path.push('%'),
            ('%', Some(other)) => path.extend(['%', other]),
            (c, _) => path.push(c),
        }
    }
    path
}

fn host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| {
        nix::sys::utsname::uname()
            .map_or_else(|_| "unknown".to_owned(), |n| n.nodename().to_string_lossy().into_owned())
    })
}

impl Log for Sink {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Other libraries of the application may log too; that is not for this sink.
        metadata.target().starts_with("stepccl")
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let level = name(record.level());
        let pid = std::process::id();
        // One write a line, so that lines of several processes do not mix. Where nobody can be
        // told, nobody is.
        let _ = match self.file.get().and_then(Option::as_ref) {
            Some(mut file) => {
                let line =
                    format!("{} stepccl {}:{pid} {level} {}\n", now(), host(), record.args());
                file.write_all(line.as_bytes())
            }
            None => {
                let line = format!("stepccl {}:{pid} {level} {}\n", host(), record.args());
                io::stderr().write_all(line.as_bytes())
            }
        };
    }

    fn flush(&self) {}
}

const fn name(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
        Level::Trace => "trace",
    }
}

/// Seconds and microseconds since 1970, as `date -d @SECONDS` takes them.
fn now() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}.{:06}", now.as_secs(), now.subsec_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_know_host_process_and_rank() {
        let path = expand("/tmp/a.%h.%p.%r.%%.%x%", 3);
        let pid = std::process::id();
        assert_eq!(path, format!("/tmp/a.{}.{pid}.3.%.%x%", host()));
    }

    #[test]
    fn levels_have_names() {
        assert_eq!(level(None).unwrap(), LevelFilter::Warn);
        assert_eq!(level(Some("DEBUG")).unwrap(), LevelFilter::Debug);
        assert!(level(Some("loud")).unwrap_err().to_string().contains("loud"));
    }
}
