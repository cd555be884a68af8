//! Records as tables for people.

use std::fmt::Write;

use crate::world::{Member, World, duration};
use crate::{Found, Operation, Phase, Snapshot, worlds};

/// Operations of a rank that are shown as under way.
const SHOWN: usize = 4;

/// All records of this process: where each rank is, and its last `most` operations.
#[must_use]
pub fn own(most: usize) -> String {
    let found = crate::scan(Some(std::process::id())).found;
    let mut out = status(&found, false);
    for snapshot in found.iter().filter_map(|found| found.snapshot.as_ref().ok()) {
        out += &history(snapshot, most);
    }
    out
}

/// Every communicator: a line a rank and operation under way, then what seems wrong.
/// `all`: `found` is of all processes.
#[must_use]
pub fn status(found: &[Found], all: bool) -> String {
    let mut out = String::new();
    for world in worlds(found) {
        if !out.is_empty() {
            out.push('\n');
        }
        show(&mut out, &world, all);
    }
    for Found { pid, program, snapshot, .. } in found {
        if let Err(error) = snapshot {
            // Writing to a string does not fail.
            let _ = writeln!(out, "pid {pid} ({program}): {error}");
        }
    }
    out
}

fn show(out: &mut String, world: &World<'_>, all: bool) {
    let Some(first) = world.found.first() else { return };
    let header = &first.snapshot.header;
    let _ = writeln!(
        out,
        "communicator {}, {} of {} ranks found, {} engine, host {}",
        world.name,
        world.found.len(),
        world.ranks,
        header.engine,
        header.host
    );
    let mut rows = vec![
        ["rank", "pid", "program", "state", "for", "operation", "bytes", "waits for"]
            .map(str::to_owned),
    ];
    for member in &world.found {
        rows.extend(lines(member));
    }
    columns(out, &rows, &[0, 1, 4, 6]);
    let findings = world.findings(all);
    for finding in &findings {
        let _ = writeln!(out, "! {finding}");
    }
}

fn lines(member: &Member<'_>) -> Vec<[String; 8]> {
    let Found { pid, program, .. } = member.process;
    let whose = [member.rank().to_string(), pid.to_string(), program.clone()];
    let mut live: Vec<&Operation> = member.snapshot.live().collect();
    live.sort_by_key(|operation| (operation.phase != Phase::Running, operation.sequence));
    if live.is_empty() {
        return vec![row(whose, idle(member.snapshot))];
    }
    let more = live.len().saturating_sub(SHOWN);
    let mut rows: Vec<_> = live
        .iter()
        .take(SHOWN)
        .map(|o| row(whose.clone(), under_way(member.snapshot, o)))
        .collect();
    for row in rows.iter_mut().skip(1) {
        row[..3].fill(String::new());
    }
    if more > 0 {
        let mut row = [(); 8].map(|()| String::new());
        row[5] = format!("and {more} more");
        rows.push(row);
    }
    rows
}

fn row([rank, pid, program]: [String; 3], rest: [String; 5]) -> [String; 8] {
    let [state, time, operation, bytes, waits] = rest;
    [rank, pid, program, state, time, operation, bytes, waits]
}

fn idle(snapshot: &Snapshot) -> [String; 5] {
    let header = &snapshot.header;
    let state = match header.state {
        crate::State::Open => "idle",
        other => other.name(),
    };
    let (time, operation, bytes) = match (snapshot.last_ended(), snapshot.timeline) {
        (Some(last), Some(line)) => (
            duration(line.ago_ns(last.ended.unwrap_or(0))),
            format!("after {}", last.title(&header.words)),
            last.bytes.to_string(),
        ),
        (Some(last), None) => {
            ("?".to_owned(), format!("after {}", last.title(&header.words)), last.bytes.to_string())
        }
        (None, _) => ("-".to_owned(), "nothing called yet".to_owned(), "-".to_owned()),
    };
    [state.to_owned(), time, operation, bytes, "-".to_owned()]
}

fn under_way(snapshot: &Snapshot, operation: &Operation) -> [String; 5] {
    let since = operation.started.unwrap_or(operation.called);
    let time = snapshot.timeline.map_or("?".to_owned(), |line| duration(line.ago_ns(since)));
    let waits = match operation.awaited {
        None => "-".to_owned(),
        Some((first, 1)) => format!("rank {first}"),
        Some((first, ranks)) => format!("rank {first} and {} more", ranks - 1),
    };
    [
        operation.phase.name().to_owned(),
        time,
        operation.title(&snapshot.header.words),
        operation.bytes.to_string(),
        waits,
    ]
}

/// The last `most` operations of one record, for a log.
#[must_use]
pub fn history(snapshot: &Snapshot, most: usize) -> String {
    let header = &snapshot.header;
    let mut rows = vec![
        [
            "operation",
            "bytes",
            "state",
            "called",
            "queued",
            "ran",
            "path",
            "algorithm",
            "waits for",
        ]
        .map(str::to_owned),
    ];
    let skipped = snapshot.operations.len().saturating_sub(most);
    // What has not ended is shown, however old.
    let old = snapshot.operations.iter().take(skipped).filter(|o| o.phase.is_live());
    for operation in old.chain(snapshot.operations.iter().skip(skipped)) {
        let [state, _, title, bytes, waits] = under_way(snapshot, operation);
        let time = |ns: Option<u64>| ns.map_or("?".to_owned(), duration);
        let line = snapshot.timeline.as_ref();
        rows.push([
            title,
            bytes,
            state,
            time(line.map(|line| line.ago_ns(operation.called))) + " ago",
            time(line.map(|line| operation.queued_ns(line))),
            time(line.map(|line| operation.ran_ns(line))),
            header.words.path(operation.path).unwrap_or_else(|| "-".to_owned()),
            header.words.algorithm(operation.algorithm).unwrap_or_else(|| "-".to_owned()),
            waits,
        ]);
    }
    let mut out = String::new();
    let _ = writeln!(
        out,
        "flight record of communicator {}, rank {} of {}: {} operations, the last {}",
        header.communicator,
        header.rank,
        header.ranks,
        header.operations,
        rows.len() - 1
    );
    columns(&mut out, &rows, &[1, 3, 4, 5]);
    out
}

/// Rows in columns of equal width, two spaces apart; numbers at the right.
fn columns<const N: usize>(out: &mut String, rows: &[[String; N]], right: &[usize]) {
    let wide: [usize; N] =
        std::array::from_fn(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0));
    for row in rows {
        let mut line = String::new();
        for (at, (cell, wide)) in row.iter().zip(wide).enumerate() {
            let gap = if at == 0 { "" } else { "  " };
            let _ = match right.contains(&at) {
                true => write!(line, "{gap}{cell:>wide$}"),
                false => write!(line, "{gap}{cell:<wide$}"),
            };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}
