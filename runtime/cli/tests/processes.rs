//! However a run ends, every rank ends with it and nothing is left.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

use common::{Process, ignored, runs, stepccl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// From a failure to the end of all: the grace of the others, and a second.
const END: Duration = Duration::from_secs(6);

/// A run that would take hours, in the middle of its work, and its ranks.
struct Busy {
    process: Process,
    ranks: Vec<u32>,
    folder: tempfile::TempDir,
    output: BufReader<std::process::ChildStdout>,
}

fn busy() -> Busy {
    let folder = tempfile::tempdir().unwrap();
    let mut command = stepccl("bench all_reduce -b 64K -e 64K -n 4000000000");
    command.env("TMPDIR", folder.path());
    let mut process = Process::start(command);
    let mut output = BufReader::new(process.0.stdout.take().unwrap());
    let mut line = String::new();
    // Its header is written when all have met.
    output.read_line(&mut line).unwrap();
    assert!(line.starts_with("# stepccl"), "{line}");
    let ranks = process.children();
    assert_eq!(ranks.len(), 2);
    Busy { process, ranks, folder, output }
}

fn send(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid as i32), signal).unwrap();
}

impl Busy {
    /// Every rank is gone soon.
    fn no_rank_is_left(&self) {
        let until = Instant::now() + Duration::from_secs(5);
        while self.ranks.iter().any(|rank| runs(*rank)) {
            assert!(Instant::now() < until, "a rank is left");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn no_file_is_left(&self) {
        assert_eq!(std::fs::read_dir(self.folder.path()).unwrap().count(), 0);
    }

    fn errors(&mut self) -> String {
        let mut text = String::new();
        self.process.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

#[test]
fn a_killed_rank_is_named_and_ends_the_run() {
    let mut busy = busy();
    send(busy.ranks[1], Signal::SIGKILL);
    assert_eq!(busy.process.end(END).code(), Some(1));
    busy.no_rank_is_left();
    busy.no_file_is_left();
    let errors = busy.errors();
    let rank = format!("rank 1 (pid {}) was ended by SIGKILL", busy.ranks[1]);
    assert!(errors.contains(&rank), "{errors}");
    assert!(errors.contains("rank 0 of 2: all_reduce"), "{errors}");
    assert!(errors.contains("lost rank 1"), "{errors}");
}

#[test]
fn a_stopped_rank_does_not_keep_the_others() {
    let mut busy = busy();
    send(busy.ranks[1], Signal::SIGSTOP);
    send(busy.ranks[0], Signal::SIGKILL);
    assert_eq!(busy.process.end(END + Duration::from_secs(4)).code(), Some(1));
    busy.no_rank_is_left();
    busy.no_file_is_left();
    let errors = busy.errors();
    assert!(errors.contains("still running 5s after a failure, ended: rank 1"), "{errors}");
}

#[test]
fn signals_end_every_rank_and_leave_nothing() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        if signal != Signal::SIGTERM && ignored(signal as i32) {
            continue;
        }
        let mut busy = busy();
        send(busy.process.0.id(), signal);
        assert_eq!(busy.process.end(END).code(), Some(code));
        busy.no_rank_is_left();
        busy.no_file_is_left();
        assert_eq!(busy.errors(), "");
    }
}

#[test]
fn ranks_end_with_the_process_that_started_them() {
    let mut busy = busy();
    send(busy.process.0.id(), Signal::SIGKILL);
    assert_eq!(busy.process.end(END).code(), None);
    busy.no_rank_is_left();
}

#[test]
fn a_reader_that_goes_away_ends_the_run_without_a_word() {
    let mut command = stepccl("bench all_reduce -b 8 -e 64 -i 4 -n 200000");
    let folder = tempfile::tempdir().unwrap();
    command.env("TMPDIR", folder.path());
    let mut process = Process::start(command);
    let mut output = BufReader::new(process.0.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    drop(output);
    assert_eq!(process.end(END).code(), Some(141));
    let mut errors = String::new();
    process.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(errors, "");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    for line in ["bench barrier -n 1", "plan all_reduce", "info"] {
        let mut command = stepccl(line);
        command.stdout(std::fs::File::options().write(true).open("/dev/full").unwrap());
        let mut process = Process::start(command);
        assert_eq!(process.end(END).code(), Some(1), "{line}");
        let mut errors = String::new();
        process.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert!(errors.contains("the output could not be written: No space left"), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let mut command = stepccl("bench barrier");
    command.env("TMPDIR", "/nonexistent/folder");
    let run = common::finish(command);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("/nonexistent/folder") && run.err.contains("set TMPDIR"), "{run:?}");
}

#[test]
fn the_output_is_read_as_it_is_written() {
    // The header of a busy run is there long before its first row.
    let mut busy = busy();
    let mut heads = String::new();
    for _ in 0..4 {
        busy.output.read_line(&mut heads).unwrap();
    }
    assert!(heads.contains("busbw"), "{heads}");
}

#[test]
fn signals_that_are_ignored_stay_so() {
    // As nohup does it; the shell is replaced by the command.
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" bench barrier -n 200000 -c 0 --json"]);
    command.arg(env!("CARGO_BIN_EXE_stepccl"));
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut process = Process::start(command);
    let until = Instant::now() + END;
    while process.children().len() < 2 {
        assert!(Instant::now() < until, "no ranks");
        std::thread::sleep(Duration::from_millis(1));
    }
    send(process.0.id(), Signal::SIGHUP);
    assert_eq!(process.end(common::LIMIT).code(), Some(0));
}
