//! The records of real processes: running, stopped, killed, and one that lies.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::time::{Duration, Instant};

use common::{Process, run, stepccl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A run that would take hours, in the middle of its work. It ends when its output is closed, so
/// that is kept.
struct Busy {
    _process: Process,
    _output: BufReader<std::process::ChildStdout>,
    _folder: tempfile::TempDir,
    ranks: Vec<u32>,
}

fn busy() -> Busy {
    let folder = tempfile::tempdir().unwrap();
    let mut command = stepccl("bench all_reduce -b 64K -e 64K -n 4000000000");
    command.env("TMPDIR", folder.path());
    let mut process = Process::start(command);
    let mut line = String::new();
    // Its header is written when all have met.
    let mut output = BufReader::new(process.0.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let ranks = process.children();
    assert_eq!(ranks.len(), 2);
    // They agree on the run first.
    for rank in &ranks {
        until(*rank, "all_reduce sum float");
    }
    // So nothing stays behind when it is killed.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the store is still there");
    Busy { _process: process, _output: output, _folder: folder, ranks }
}

/// Output of `status` for one process, once it says `what`.
fn until(pid: u32, what: &str) -> String {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let run = run(&format!("status --last 3 --pid {pid}"));
        if run.out.contains(what) || Instant::now() > end {
            assert!(run.out.contains(what), "{what}: {run:?}");
            return run.out;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_stopped_rank_is_named_and_a_killed_one_has_no_record() {
    let busy = busy();
    let ranks = &busy.ranks;
    let signal = |signal| kill(Pid::from_raw(ranks[1] as i32), signal).unwrap();
    signal(Signal::SIGSTOP);
    let out = until(ranks[1], "is stopped");
    assert!(out.contains("all_reduce sum float"), "{out}");
    // The other rank was not looked for.
    assert!(!out.contains("no record of rank"), "{out}");
    // The other one waits for it.
    until(ranks[0], "rank 1");
    signal(Signal::SIGKILL);
    let end = Instant::now() + Duration::from_secs(20);
    while run(&format!("status --pid {}", ranks[1])).code != Some(1) {
        assert!(Instant::now() < end, "the record of a killed process is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_trace_is_json_with_the_operations_of_the_process() {
    let busy = busy();
    let ranks = &busy.ranks;
    let run = run(&format!("trace --pid {}", ranks[0]));
    assert_eq!(run.code, Some(0), "{run:?}");
    let trace: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let slice = events.iter().find(|event| event["name"] == "all_reduce").unwrap();
    assert_eq!(slice["ph"], "X");
    assert_eq!(slice["pid"], ranks[0]);
}

#[test]
fn top_shows_each_look() {
    let busy = busy();
    let ranks = &busy.ranks;
    let run = run(&format!("top --interval 0.1 --count 2 --pid {}", ranks[0]));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.out.matches("ops/s").count(), 2, "{}", run.out);
}

#[test]
fn a_process_that_lies_is_an_error_of_its_own() {
    let fd = memfd_create("stepccl-flight", MFdFlags::MFD_CLOEXEC).unwrap();
    let mut file = std::fs::File::from(fd);
    file.write_all(&[0x1b; 20_000]).unwrap();
    let run = run(&format!("status --pid {}", std::process::id()));
    assert!(run.out.contains("no flight record"), "{run:?}");
    assert!(!run.out.contains('\x1b'), "{run:?}");
}

#[test]
fn a_process_without_a_record_is_told_with_exit_code_1() {
    let none = run("status --pid 1");
    assert_eq!(none.code, Some(1));
    assert!(none.err.contains("process 1"), "{none:?}");
    assert_eq!(run("top --interval 0").code, Some(2));
    assert_eq!(run("trace --seconds -1").code, Some(2));
}
