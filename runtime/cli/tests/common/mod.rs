//! Runs the real command, bounded in time.
#![expect(dead_code, reason = "each test file uses the part that it needs")]

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// No run of these tests takes longer unless it hangs.
pub const LIMIT: Duration = Duration::from_secs(30);

/// The command with its arguments in one line, and none of the caller's settings.
pub fn stepccl(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stepccl"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("STEPCCL_") {
            command.env_remove(name);
        }
    }
    command.args(line.split_whitespace());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A child that does not outlive the test.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    pub fn start(mut command: Command) -> Self {
        Self(command.spawn().unwrap())
    }

    /// How it ends; a failure of the test where it does not in `limit`.
    pub fn end(&mut self, limit: Duration) -> ExitStatus {
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "still running after {limit:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Processes that it started and that run.
    pub fn children(&self) -> Vec<u32> {
        let path = format!("/proc/{0}/task/{0}/children", self.0.id());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }
}

/// Whether a process runs. One that has ended and that nobody waited for does not: who inherits it
/// may never wait.
pub fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name, which may hold anything but ends with the last parenthesis.
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

/// Whether this process, and so what it starts, ignores a signal: as in the background of a script.
pub fn ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << (signal - 1)) != 0
}

/// What a run said and how it ended.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

pub fn finish(command: Command) -> Run {
    let mut process = Process::start(command);
    let out = reader(process.0.stdout.take());
    let err = reader(process.0.stderr.take());
    let code = process.end(LIMIT).code();
    Run { code, out: out.join().unwrap(), err: err.join().unwrap() }
}

pub fn run(line: &str) -> Run {
    finish(stepccl(line))
}

/// Output of a run that must succeed.
pub fn good(line: &str) -> String {
    let run = run(line);
    assert_eq!(run.code, Some(0), "{line}: {run:?}");
    assert_eq!(run.err, "", "{line}");
    run.out
}

fn reader(from: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        from.unwrap().read_to_string(&mut text).unwrap();
        text
    })
}
