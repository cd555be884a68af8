//! What a process holds of the system, to compare before and after.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Set in a process that runs one test alone.
const ALONE: &str = "STEPCCL_TEST_ALONE";
/// Set where the folders of names belong to this process and its children alone.
const OWN_FOLDERS: &str = "STEPCCL_TEST_OWN_FOLDERS";
/// Folders in which something may be left.
pub const FOLDERS: [&str; 2] = ["/dev/shm", "/tmp"];
/// Mounts both empty, then runs `$0`, which may lie in one of them: it is open before.
const MOUNT: &str = "exec 9<\"$0\" && mount -t tmpfs none /dev/shm && mount -t tmpfs none /tmp \
                     && exec /proc/self/fd/9 \"$@\"";

/// How long what ends by itself, such as a thread, may take to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// What this process holds, by kind; descriptors and mappings by what they lead to.
#[derive(Debug, PartialEq, Eq)]
pub struct Footprint {
    descriptors: Vec<String>,
    threads: usize,
    children: Vec<String>,
    shared_memory: Vec<String>,
    /// In [`FOLDERS`], where no other program makes any.
    names: Vec<String>,
}

fn entries(folder: &str) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Open descriptors, that of the look itself included.
pub fn descriptors() -> usize {
    entries("/proc/self/fd").len()
}

impl Footprint {
    pub fn now() -> Self {
        // The descriptor that lists the others is closed by the time its link is read.
        let mut descriptors: Vec<_> = entries("/proc/self/fd")
            .iter()
            .filter_map(|fd| {
                Some(format!("{} -> {}", fd.display(), std::fs::read_link(fd).ok()?.display()))
            })
            .collect();
        let threads = entries("/proc/self/task");
        // A thread that ends meanwhile has no children any more.
        let pids: String = threads
            .iter()
            .filter_map(|thread| std::fs::read_to_string(thread.join("children")).ok())
            .collect();
        let mut children: Vec<_> = pids.split_whitespace().map(str::to_owned).collect();
        let mut shared_memory: Vec<_> = std::fs::read_to_string("/proc/self/maps")
            .unwrap()
            .lines()
            .filter(|line| line.contains("/memfd:"))
            .map(str::to_owned)
            .collect();
        let folders = if has_own_folders() { &FOLDERS[..] } else { &[] };
        let mut names: Vec<_> = folders
            .iter()
            .flat_map(|folder| entries(folder))
            .map(|path| path.display().to_string())
            .collect();
        names.sort_unstable();
        descriptors.sort_unstable();
        children.sort_unstable();
        shared_memory.sort_unstable();
        Self { descriptors, threads: threads.len(), children, shared_memory, names }
    }

    /// Fails where more or other things are held than before, once what ends by itself had time to.
    pub fn assert_restored(&self, after: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let now = Self::now();
            if now == *self {
                return;
            }
            assert!(Instant::now() < until, "after {after}: {now:#?}\nbefore: {self:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Whether names in [`FOLDERS`] are part of a footprint.
pub fn has_own_folders() -> bool {
    std::env::var_os(OWN_FOLDERS).is_some()
}

/// Run one test of this binary in a process with [`FOLDERS`] of its own; without them where this
/// machine does not allow it, which is said.
pub fn run_alone(test: &str) {
    let exe = std::env::current_exe().unwrap();
    let words = ["--exact", test, "--nocapture", "--test-threads=1"];
    let as_root = ["unshare", "--mount"];
    let as_user = ["unshare", "--user", "--map-root-user", "--mount"];
    let mut command = match [&as_root[..], &as_user[..]].into_iter().find(|c| can_mount(c)) {
        Some(unshare) => {
            let mut command = mounting(unshare, &exe);
            command.env(OWN_FOLDERS, "").env("TMPDIR", FOLDERS[1]);
            command
        }
        None => {
            eprintln!("SKIPPED: no mounts of its own, so names in {FOLDERS:?} are not compared");
            Command::new(&exe)
        }
    };
    let status = command.args(words).env(ALONE, "").stdin(Stdio::null()).status().unwrap();
    assert!(status.success(), "{test}: {status}");
}

/// Whether this is the process of [`run_alone`].
pub fn is_alone() -> bool {
    std::env::var_os(ALONE).is_some()
}

fn mounting(unshare: &[&str], program: &Path) -> Command {
    let mut command = Command::new(unshare[0]);
    command.args(&unshare[1..]).args(["sh", "-c", MOUNT]).arg(program);
    command
}

fn can_mount(unshare: &[&str]) -> bool {
    let mut command = mounting(unshare, Path::new("/bin/true"));
    command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
