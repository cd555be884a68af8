//! What a process holds of the system, to compare before and after.

use std::time::{Duration, Instant};

/// How long what ends by itself, such as a thread, may take to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// What this process holds, by kind; descriptors and mappings by what they lead to.
#[derive(Debug, PartialEq, Eq)]
pub struct Footprint {
    descriptors: Vec<String>,
    threads: usize,
    children: Vec<String>,
    shared_memory: Vec<String>,
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
        descriptors.sort_unstable();
        children.sort_unstable();
        shared_memory.sort_unstable();
        Self { descriptors, threads: threads.len(), children, shared_memory }
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
