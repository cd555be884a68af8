//! Finds the records of running processes, through `/proc`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::libc;
use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};

use crate::text::clean;
use crate::{FormatError, Snapshot, layout};

/// Age below which the rate of the clock is not known well: the reader waits for it.
const YOUNG: std::time::Duration = std::time::Duration::from_millis(2);

/// A record of another process, and who holds it.
#[derive(Debug)]
pub struct Found {
    /// Process whose record it is, as this process sees it; where that one is gone, one that was
    /// forked from it and holds its memory.
    pub pid: u32,
    /// Whether `pid` is the process that made it.
    pub is_owner: bool,
    /// Name of its program.
    pub program: String,
    /// Its state as the kernel says: `R`, `S`, `T` (stopped) and so on.
    pub kernel_state: char,
    /// What it says.
    pub snapshot: Result<Snapshot, FormatError>,
}

impl Found {
    /// A record of this process.
    #[must_use]
    pub fn own(snapshot: Snapshot) -> Self {
        let program = fs::read("/proc/self/comm").unwrap_or_default();
        Self {
            pid: std::process::id(),
            is_owner: true,
            program: clean(program.trim_ascii_end()),
            kernel_state: 'R',
            snapshot: Ok(snapshot),
        }
    }
}

/// What was found, and what could not be looked into.
#[derive(Debug, Default)]
pub struct Scan {
    /// Records, in the order of process ids.
    pub found: Vec<Found>,
    /// Processes of other users, or that do not let themselves be looked into.
    pub closed_processes: usize,
}

/// Look for records in all processes, or in the given one.
#[must_use]
pub fn scan(only: Option<u32>) -> Scan {
    let mut scan = Scan::default();
    // Several processes may hold one record: those that were forked.
    let mut records: BTreeMap<(u64, u64), Vec<(u32, PathBuf)>> = BTreeMap::new();
    for pid in only.map_or_else(processes, |pid| vec![pid]) {
        let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            scan.closed_processes += usize::from(Path::new(&format!("/proc/{pid}")).exists());
            continue;
        };
        for path in entries.flatten().map(|entry| entry.path()).filter(|path| is_record(path)) {
            // The inode behind the descriptor.
            if let Ok(file) = fs::metadata(&path) {
                records.entry((file.dev(), file.ino())).or_default().push((pid, path));
            }
        }
    }
    for holders in records.values() {
        scan.found.extend(look(holders));
    }
    scan.found.sort_by_key(|found| found.pid);
    scan
}

fn look(holders: &[(u32, PathBuf)]) -> Option<Found> {
    let (first, path) = holders.first()?;
    let snapshot = read(path)?;
    let made_by = snapshot.as_ref().ok().map(|snapshot| snapshot.header.pid);
    let owner = holders.iter().find(|(pid, _)| made_by == own_id(*pid));
    let pid = owner.map_or(*first, |(pid, _)| *pid);
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let program = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some(Found {
        pid,
        is_owner: owner.is_some() || snapshot.is_err(),
        program: clean(program.trim_ascii_end()),
        // The state follows the name, which may hold anything but ends with the last parenthesis.
        kernel_state: stat.rsplit_once(") ").and_then(|(_, s)| s.chars().next()).unwrap_or('?'),
        snapshot,
    })
}

/// Copy the record behind `path`. None where it is no memory of that name after all, or is gone.
fn read(path: &Path) -> Option<Result<Snapshot, FormatError>> {
    // Anything may hide behind that name, and opening it for reads could hang: it is looked at
    // first. Its memory is never mapped, because a file that shrinks would end this process.
    let handle =
        File::options().read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC).open(path).ok()?;
    let memory = fstatfs(handle.as_fd()).is_ok_and(|fs| fs.filesystem_type() == TMPFS_MAGIC);
    let facts = handle.metadata().ok()?;
    if !memory || !facts.is_file() {
        return None;
    }
    let own = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&handle));
    let file = File::open(own).ok()?;
    let length = usize::try_from(facts.len()).unwrap_or(usize::MAX);
    let read = |at, bytes: &mut [u8]| file.read_exact_at(bytes, at as u64).is_ok();
    let take = || Snapshot::take(length, read);
    let snapshot = take();
    if snapshot.as_ref().is_ok_and(Snapshot::is_young) {
        std::thread::sleep(YOUNG);
        return Some(take());
    }
    Some(snapshot)
}

fn is_record(descriptor: &Path) -> bool {
    let Ok(target) = fs::read_link(descriptor) else { return false };
    let target = target.to_string_lossy();
    let name = target.strip_prefix("/memfd:").and_then(|rest| rest.strip_suffix(" (deleted)"));
    name == Some(layout::FILE_NAME)
}

fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

/// The id by which the process knows itself, in its own PID namespace.
fn own_id(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_whitespace().last()?.parse().ok()
}
