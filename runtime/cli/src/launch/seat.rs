//! The seat of a rank: who it is among how many, and the store where they meet.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stepccl::{FileStore, Secret, Store, StoreError, TcpStore, TcpStoreLimits, TcpStoreServer};

use super::Role;
use super::external::{External, Meeting};

/// One rank of a run.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    pub rank: u32,
    pub ranks: u32,
    /// Rank among those of this machine, and their number.
    pub local: (u32, u32),
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    /// A folder of this job, removed by rank 0 once all have met.
    Folder(PathBuf),
    Address(String, u16),
}

/// An open store, and what must live as long as ranks meet.
#[derive(Debug)]
pub(crate) struct Met {
    store: Box<dyn Store>,
    server: Option<TcpStoreServer>,
    folder: Option<PathBuf>,
}

impl Seat {
    /// The seat of a rank that this command started.
    pub fn of_role(role: Role, ranks: u32) -> Self {
        let local = (role.rank, ranks);
        Self { rank: role.rank, ranks, local, place: Place::Folder(role.store) }
    }

    /// The seat of a rank that another launcher started.
    pub fn of_external(external: External) -> Self {
        let External { rank, ranks, local, meeting, .. } = external;
        let place = match meeting {
            Meeting::Here(job) => Place::Folder(folder(&job.unwrap_or_else(starter))),
            Meeting::Address(host, port) => Place::Address(host, port),
        };
        Self { rank, ranks, local: local.unwrap_or((rank, ranks)), place }
    }

    /// Open the store; rank 0 serves it where it is an address.
    ///
    /// # Errors
    ///
    /// What the store says.
    pub fn meet(&self, secret: Option<Secret>, timeout: Duration) -> Result<Met, StoreError> {
        let mut met = match &self.place {
            Place::Folder(folder) => Met::folder(folder)?,
            Place::Address(host, port) => {
                let address = if host.contains(':') && !host.starts_with('[') {
                    format!("[{host}]:{port}")
                } else {
                    format!("{host}:{port}")
                };
                let serve =
                    |secret| TcpStoreServer::bind(&address, secret, TcpStoreLimits::default());
                let server = (self.rank == 0).then(|| serve(secret.clone())).transpose()?;
                let store = TcpStore::connect(&address, secret, timeout)?;
                Met { store: Box::new(store), server, folder: None }
            }
        };
        if let (0, Place::Folder(folder)) = (self.rank, &self.place) {
            met.folder = Some(folder.clone());
        }
        Ok(met)
    }
}

impl Met {
    fn folder(folder: &Path) -> Result<Self, StoreError> {
        Ok(Self { store: Box::new(FileStore::open(folder)?), server: None, folder: None })
    }

    pub fn store(&self) -> &dyn Store {
        &*self.store
    }
}

impl Drop for Met {
    fn drop(&mut self) {
        drop(self.server.take());
        if let Some(folder) = &self.folder {
            // Where it cannot be removed, its name is never used again.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// The folder of a job, for this user.
fn folder(job: &str) -> PathBuf {
    let user = std::fs::metadata("/proc/self").map_or(0, |me| me.uid());
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let job: String = job.chars().map(plain).take(100).collect();
    std::env::temp_dir().join(format!("stepccl-bench-{user}-{job}"))
}

/// The process that started this one, in words that no other process ever has: the ranks of a
/// machine have one launcher.
fn starter() -> String {
    let parent = nix::unistd::getppid();
    let stat = std::fs::read_to_string(format!("/proc/{parent}/stat")).unwrap_or_default();
    format!("{parent}-{}", start_time(&stat).unwrap_or("0"))
}

/// Ticks from the start of the machine to that of a process, from its `stat`.
fn start_time(stat: &str) -> Option<&str> {
    // The name may hold anything but ends with the last parenthesis; the time is the 20th behind.
    stat.rsplit_once(") ")?.1.split(' ').nth(19)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_job_is_a_plain_name_in_the_folder_for_temporary_files() {
        let found = folder("prterun-host-12@1/../x y");
        assert_eq!(found.parent(), Some(std::env::temp_dir().as_path()));
        let name = found.file_name().unwrap().to_str().unwrap();
        assert!(name.ends_with("-prterun-host-12_1_.._x_y"), "{name}");
    }

    #[test]
    fn a_start_time_is_found_behind_a_name_with_parentheses() {
        let stat = "7 (a) b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21";
        assert_eq!(start_time(stat), Some("4242"));
        assert_eq!(start_time("7 (x) S 1"), None);
        let own = std::fs::read_to_string("/proc/self/stat").unwrap();
        assert!(start_time(&own).unwrap().parse::<u64>().unwrap() > 0);
    }
}
