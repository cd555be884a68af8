//! Nodes for tests: network namespaces with a cable between them, and ranks as processes in them.
//!
//! What a machine does not allow is said on the error output, and the test is skipped.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

static WORLDS: AtomicU32 = AtomicU32::new(0);

/// Two namespaces and a pair of virtual interfaces between them; gone when dropped.
pub struct Nodes {
    names: [String; 2],
    subnet: u32,
}

/// Run a command; its error output where it fails.
pub fn run(command: &str) -> Result<(), String> {
    let words: Vec<_> = command.split_whitespace().collect();
    let output = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{command}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Say that a test was not run, and why.
pub fn skip(reason: &str) {
    eprintln!("SKIPPED: {reason}");
}

impl Nodes {
    /// Two connected nodes; none, with the reason told, where this machine does not allow it.
    pub fn new() -> Option<Self> {
        let number = WORLDS.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}-{number}", std::process::id());
        let names = ["a", "b"].map(|side| format!("stepccl-test-{id}-{side}"));
        let nodes = Self { names, subnet: (std::process::id() * 7 + number) % 250 };
        match nodes.build() {
            Ok(()) => Some(nodes),
            Err(reason) => {
                skip(&format!("no network namespaces: {reason}"));
                None
            }
        }
    }

    fn build(&self) -> Result<(), String> {
        let [a, b] = &self.names;
        run(&format!("ip netns add {a}"))?;
        run(&format!("ip netns add {b}"))?;
        run(&format!("ip -n {a} link add eth0 type veth peer name eth0 netns {b}"))?;
        for (name, host) in self.names.iter().zip(1..) {
            let subnet = self.subnet;
            run(&format!("ip -n {name} link set lo up"))?;
            run(&format!("ip -n {name} addr add 10.99.{subnet}.{host}/24 dev eth0"))?;
            run(&format!("ip -n {name} link set eth0 up"))?;
        }
        Ok(())
    }

    /// Name of a node's namespace.
    pub fn name(&self, node: usize) -> &str {
        &self.names[node]
    }

    /// Run a command of `ip`, such as `link set eth0 down`, in a node.
    pub fn ip(&self, node: usize, command: &str) -> Result<(), String> {
        run(&format!("ip -n {} {command}", self.names[node]))
    }

    /// A command that runs in a node.
    pub fn command(&self, node: usize, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[node]]).arg(program);
        command
    }

    /// Start the test `child` of this binary in a node, with these variables.
    pub fn start(&self, node: usize, variables: &[(&str, String)]) -> Process {
        let mut command = self.command(node, &std::env::current_exe().unwrap());
        command
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Process(command.spawn().unwrap())
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for name in &self.names {
            // It may never have been made.
            drop(run(&format!("ip netns del {name}")));
        }
    }
}

/// A child process that does not outlive the test. `ip netns exec` becomes the child itself.
pub struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
    }

    pub fn succeeds(&mut self, limit: Duration) {
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                assert!(status.success(), "a rank failed: {status}");
                return;
            }
            assert!(Instant::now() < until, "a rank hangs");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
