//! Where checks look: the folders of the system, or made-up ones in tests.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use stepccl_topology::Machine;

/// Longest text that is read, in bytes.
const LONGEST: u64 = 64 << 10;

/// The machine that is looked at, and for what.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub sys: PathBuf,
    pub proc: PathBuf,
    pub dev: PathBuf,
    /// Ranks that are to run on this machine.
    pub ranks: u32,
}

impl Scene {
    /// This machine.
    pub fn here(ranks: u32) -> Self {
        Self { sys: "/sys".into(), proc: "/proc".into(), dev: "/dev".into(), ranks }
    }

    pub fn machine(&self) -> Machine {
        Machine::read(&self.sys)
    }

    /// A text below `/sys`, without white space at its ends and with nothing that would change a
    /// terminal.
    pub fn sys(&self, path: &str) -> Option<String> {
        text(self.sys.join(path))
    }

    /// The same below `/proc`.
    pub fn proc(&self, path: &str) -> Option<String> {
        text(self.proc.join(path))
    }

    /// Names in a folder below `/sys`, in order.
    pub fn sys_names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.sys.join(path)).into_iter().flatten();
        let mut names: Vec<String> = entries
            .take(1024)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.bytes().all(|b| b.is_ascii_graphic()))
            .collect();
        names.sort();
        names
    }
}

fn text(path: PathBuf) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(LONGEST).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let plain = |c: char| c == '\n' || c == '\t' || !c.is_control();
    Some(text.trim().chars().filter(|c| plain(*c)).collect())
}

#[cfg(test)]
impl Scene {
    /// A scene in an empty folder, which the second value keeps.
    pub fn made_up() -> (Self, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let below = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        (Self { sys: below("sys"), proc: below("proc"), dev: below("dev"), ranks: 2 }, folder)
    }

    /// Write a file: `sys/...`, `proc/...` or `dev/...`.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.sys.parent().unwrap().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}
