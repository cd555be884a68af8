//! `stepccl status`: where each rank of the running jobs is.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use nix::unistd::{Uid, User};
use serde_json::{Value, json};
use stepccl::flight_record::{Found, Operation, Scan, Snapshot, scan, table, worlds};

use crate::outcome::OutputError;

const NOTES: &str = "\
It reads the flight records of running processes, hung ones too, and changes nothing. Lines that
begin with ! say what seems wrong. Documentation/flight-record.md explains the columns.

Examples:
  stepccl status
  stepccl status --pid 4711 --last 20

Exit codes: 0 a record was found, 1 none was found, 2 bad arguments.";

/// Show where each rank of the running jobs is.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub(crate) struct Args {
    /// Only this process
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Also the last N operations of each rank
    #[arg(long, value_name = "N", default_value_t = 0)]
    last: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// No record was found.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NothingFound(String);

/// The records of `pid`, or of all processes.
pub(crate) fn find(pid: Option<u32>) -> Result<Vec<Found>, NothingFound> {
    let Scan { found, closed_processes } = scan(pid);
    if !found.is_empty() {
        return Ok(found);
    }
    let uid = Uid::effective();
    let user = User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |u| u.name);
    let mut text = match pid {
        Some(pid) if closed_processes == 0 && !exists(pid) => format!("there is no process {pid}"),
        Some(pid) => format!("process {pid} has no StepCCL flight record"),
        None => format!("no StepCCL process found for user {user}"),
    };
    if closed_processes > 0 {
        text += &format!(
            "; {closed_processes} processes of other users cannot be looked into: try as that user, or as root"
        );
    } else if pid.is_none() {
        text += ": nothing runs, or STEPCCL_FLIGHT_RECORDS is 0";
    }
    Err(NothingFound(text))
}

fn exists(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// Print it.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let found = match find(args.pid) {
        Ok(found) => found,
        Err(NothingFound(_)) if args.json => {
            print("[]\n")?;
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(error.into()),
    };
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&all(&found, args))?))?;
    } else {
        let mut text = table::status(&found, args.pid.is_none());
        if args.last > 0 {
            for snapshot in found.iter().filter_map(|found| found.snapshot.as_ref().ok()) {
                text += "\n";
                text += &table::history(snapshot, args.last);
            }
        }
        print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Write `text` to standard output.
pub(crate) fn print(text: &str) -> Result<(), OutputError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(OutputError)
}

fn all(found: &[Found], args: &Args) -> Value {
    let worlds = worlds(found).into_iter().map(|world| {
        let ranks: Vec<Value> = world
            .found
            .iter()
            .map(|member| rank(member.process, member.snapshot, args.last))
            .collect();
        json!({
            "communicator": world.name,
            "job": format!("{:016x}", world.job),
            "ranks": world.ranks,
            "findings": world.findings(args.pid.is_none()),
            "found": ranks,
        })
    });
    worlds.collect()
}

fn rank(found: &Found, snapshot: &Snapshot, last: usize) -> Value {
    let header = &snapshot.header;
    let skipped = snapshot.operations.len().saturating_sub(last);
    json!({
        "rank": header.rank,
        "pid": found.pid,
        "program": found.program,
        "host": header.host,
        "engine": header.engine,
        "state": header.state.name(),
        "blames": header.culprit,
        "stopped": found.kernel_state == 'T',
        "operations": header.operations,
        "collectives": header.collectives,
        "clock": header.clock.name(),
        "counters": header.counters.iter().map(|c| (c.name.clone(), json!(c.value))).collect::<serde_json::Map<_, _>>(),
        "under_way": snapshot.live().map(|o| operation(snapshot, o)).collect::<Vec<_>>(),
        "last_ended": snapshot.last_ended().map(|o| operation(snapshot, o)),
        "last": snapshot.operations.iter().skip(skipped).map(|o| operation(snapshot, o)).collect::<Vec<_>>(),
    })
}

fn operation(snapshot: &Snapshot, operation: &Operation) -> Value {
    let words = &snapshot.header.words;
    let line = snapshot.timeline.as_ref();
    json!({
        "sequence": operation.sequence,
        "collective": operation.collective,
        "kind": words.kind(operation.kind),
        "dtype": words.dtype(operation.dtype),
        "op": words.op(operation.op),
        "with": operation.with,
        "tag": operation.tag,
        "bytes": operation.bytes,
        "count": operation.count,
        "path": words.path(operation.path),
        "algorithm": words.algorithm(operation.algorithm),
        "page_bytes": operation.details.map(|d| d.page_bytes),
        "depth": operation.details.map(|d| d.depth),
        "state": operation.phase.name(),
        "called_ns_ago": line.map(|line| line.ago_ns(operation.called)),
        "queued_ns": line.map(|line| operation.queued_ns(line)),
        "ran_ns": line.map(|line| operation.ran_ns(line)),
        "waits_for": operation.awaited.map(|(first, ranks)| json!({"first_rank": first, "ranks": ranks})),
    })
}
