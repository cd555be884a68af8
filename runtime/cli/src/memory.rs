//! How much memory this process and its children may still take.

use std::path::{Path, PathBuf};

/// Bytes that are free or can be made free, within the limits of the control group; `None` where
/// the system does not say.
pub(crate) fn available() -> Option<u64> {
    let free = field(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")?;
    Some(group_limit().map_or(free, |limit| limit.min(free)))
}

/// Bytes of a line of `/proc/meminfo`.
fn field(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The smallest limit of the control group (version 2) and those above it.
fn group_limit() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    let folder: PathBuf = root.join(own);
    folder
        .ancestors()
        .take_while(|folder| folder.starts_with(root))
        .filter_map(|folder| std::fs::read_to_string(folder.join("memory.max")).ok())
        .filter_map(|limit| limit.trim().parse::<u64>().ok())
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_in_kib() {
        let text = "MemTotal:  100 kB\nMemAvailable:   24 kB\n";
        assert_eq!(field(text, "MemAvailable:"), Some(24 * 1024));
        assert_eq!(field(text, "SwapFree:"), None);
        assert_eq!(field("MemAvailable: many kB", "MemAvailable:"), None);
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(available().is_some_and(|bytes| bytes > 1 << 20));
    }
}
