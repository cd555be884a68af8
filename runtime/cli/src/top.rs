//! `stepccl top`: what each rank does, again and again.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use stepccl::flight_record::{Member, Operation, duration, scan, worlds};

use crate::outcome::BadArguments;
use crate::status::{find, print};

/// Clears the screen and goes to its first place.
const CLEAR: &str = "\x1b[H\x1b[J";
const HEAD: &str = "rank      pid  state     in flight       ops/s      GB/s  now";

const NOTES: &str = "\
ops/s counts every operation. GB/s is that of the bytes of messages; where more operations ended
between two looks than the record holds, it is estimated from those that it holds, and marked ~.

Examples:
  stepccl top
  stepccl top --interval 0.5 --count 10";

/// Watch what each rank of the running jobs does; ends with Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub(crate) struct Args {
    /// Only this process
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// Looks; 0: until Ctrl-C, or until no record is left
    #[arg(long, value_name = "N", default_value_t = 0)]
    count: u64,
}

/// A rank, and how far it was.
type Before = HashMap<(u32, u64, u32), (u64, Instant)>;

/// Print it, again and again.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    if !(0.05..=3600.0).contains(&args.interval) {
        let text = format!("--interval {}: must be from 0.05 to 3600 seconds", args.interval);
        return Err(BadArguments(text).into());
    }
    let interval = Duration::from_secs_f64(args.interval);
    let clear = if io::stdout().is_terminal() { CLEAR } else { "" };
    let mut before = Before::new();
    let all = args.pid.is_none();
    look(&find(args.pid)?, &mut before, all);
    let mut looks = 0;
    while args.count == 0 || looks < args.count {
        std::thread::sleep(interval);
        let found = scan(args.pid).found;
        let text = look(&found, &mut before, all);
        print(&format!("{clear}{text}"))?;
        if found.is_empty() {
            print("no record is left: the processes have ended\n")?;
            break;
        }
        looks += 1;
    }
    Ok(ExitCode::SUCCESS)
}

fn look(found: &[stepccl::flight_record::Found], before: &mut Before, all: bool) -> String {
    let mut text = String::new();
    let mut now = Before::new();
    for world in worlds(found) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "communicator {}, {} ranks\n{HEAD}", world.name, world.ranks);
        for member in &world.found {
            let header = &member.snapshot.header;
            let key = (member.process.pid, header.job, header.rank);
            let earlier = before.get(&key).copied();
            now.insert(key, (header.operations, Instant::now()));
            text += &line(member, earlier);
        }
        for finding in world.findings(all) {
            let _ = writeln!(text, "! {finding}");
        }
    }
    *before = now;
    text
}

fn line(member: &Member<'_>, earlier: Option<(u64, Instant)>) -> String {
    let snapshot = member.snapshot;
    let live: Vec<&Operation> = snapshot.live().collect();
    let (operations, bytes) = match earlier {
        Some((operations, at)) => {
            let seconds = at.elapsed().as_secs_f64().max(1e-9);
            let new = snapshot.header.operations.saturating_sub(operations);
            (format!("{:.0}", new as f64 / seconds), rate(member, operations, new, seconds))
        }
        None => ("-".to_owned(), "-".to_owned()),
    };
    let doing = match (live.first(), snapshot.last_ended()) {
        (Some(first), _) => {
            let time = snapshot.timeline.map_or(0, |line| line.ago_ns(first.called));
            let title = first.title(&snapshot.header.words);
            match first.awaited {
                Some((rank, _)) => format!("{title} for {}, waits for rank {rank}", duration(time)),
                None => format!("{title} for {}", duration(time)),
            }
        }
        (None, Some(last)) => format!("after {}", last.title(&snapshot.header.words)),
        (None, None) => "nothing called yet".to_owned(),
    };
    let state = match (live.first(), member.process.kernel_state) {
        (_, 'T') => "stopped",
        (Some(first), _) => first.phase.name(),
        (None, _) => snapshot.header.state.name(),
    };
    format!(
        "{:>4}  {:>7}  {state:<8}  {:>9}  {operations:>10}  {bytes:>8}  {doing}\n",
        member.rank(),
        member.process.pid,
        live.len(),
    )
}

/// Gigabytes a second of the operations from number `first` on, of which there were `new`.
fn rate(member: &Member<'_>, first: u64, new: u64, seconds: f64) -> String {
    let seen = member.snapshot.operations.iter().filter(|o| o.sequence >= first);
    let (count, bytes) = seen.fold((0_u64, 0.0), |(n, sum), o| (n + 1, sum + o.bytes as f64));
    if count == 0 {
        return "0.00".to_owned();
    }
    let estimate = bytes / count as f64 * new as f64 / seconds / 1e9;
    let mark = if count < new { "~" } else { "" };
    format!("{mark}{estimate:.2}")
}
