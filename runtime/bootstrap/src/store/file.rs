//! A store in a directory that all ranks can reach.

use std::fmt::Write as _;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{MAX_VALUE_BYTES, Store, StoreError, add_to_entry, check_key, check_value};
use crate::auth::digest;
use crate::backoff::Backoff;

/// How long `add` waits for the lock of the directory.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest escaped key that is a file name as it is; longer ones end in a digest.
const MAX_PLAIN_NAME: usize = 200;

/// A store in a directory: one file a key, written whole by rename; `add` takes a file lock.
///
/// Works among processes of one host, and among hosts where the directory is on a file system with
/// atomic rename and coherent locks. Files are readable by their user only. A writer that is killed
/// may leave a file named `part-…`, which nobody reads. Use a fresh directory for each job.
#[derive(Debug)]
pub struct FileStore {
    directory: PathBuf,
    parts: AtomicU64,
    /// Keeps the unfinished files of two hosts with equal process ids apart.
    id: u64,
}

impl FileStore {
    /// The store in `directory`, which is made for this user alone if it is not there.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] where it cannot be made, is no directory, or may be written by others.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let fail = |message: String| StoreError::Io {
            what: format!("store directory {}", directory.display()),
            message,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|e| fail(e.to_string()))?;
        let metadata = std::fs::metadata(directory).map_err(|e| fail(e.to_string()))?;
        if metadata.mode() & 0o022 != 0 {
            return Err(fail(format!(
                "mode {:o} lets other users write; run `chmod 700` on it",
                metadata.mode() & 0o7777,
            )));
        }
        let id = getrandom::u64().map_err(|e| fail(e.to_string()))?;
        Ok(Self { directory: directory.to_owned(), parts: AtomicU64::new(0), id })
    }

    fn path(&self, key: &str) -> PathBuf {
        self.directory.join(file_name(key))
    }

    fn read(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path(key);
        let file = match OpenOptions::new().read(true).custom_flags(O_NOFOLLOW).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io("open", &path, &error)),
        };
        let mut bytes = Vec::new();
        file.take(MAX_VALUE_BYTES as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| io("read", &path, &e))?;
        check_value(key, &bytes)?;
        Ok(Some(bytes))
    }

    fn write(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        let part = self.parts.fetch_add(1, Ordering::Relaxed);
        let part = self.directory.join(format!("part-{:016x}-{part}", self.id));
        let path = self.path(key);
        let write = || -> Result<(), StoreError> {
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&part)
                .map_err(|e| io("create", &part, &e))?;
            file.write_all(value).map_err(|e| io("write", &part, &e))?;
            std::fs::rename(&part, &path).map_err(|e| io("rename to", &path, &e))
        };
        write().inspect_err(|_| drop(std::fs::remove_file(&part)))
    }

    /// The lock of the directory; dropping the file releases it.
    fn lock(&self) -> Result<File, StoreError> {
        let path = self.directory.join("lock");
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(O_NOFOLLOW)
            .open(&path)
            .map_err(|e| io("open", &path, &e))?;
        let deadline = Instant::now() + LOCK_TIMEOUT;
        let mut backoff = Backoff::store();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(error)) => return Err(io("lock", &path, &error)),
                Err(TryLockError::WouldBlock) if backoff.sleep_until(deadline) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(StoreError::Io {
                        what: format!("lock {}", path.display()),
                        message: format!("held by another process for {LOCK_TIMEOUT:?}"),
                    });
                }
            }
        }
    }
}

impl Store for FileStore {
    fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        check_key(key)?;
        check_value(key, value)?;
        self.write(key, value)
    }

    fn get(&self, key: &str, deadline: Instant) -> Result<Vec<u8>, StoreError> {
        let start = Instant::now();
        let mut backoff = Backoff::store();
        loop {
            if let Some(value) = self.try_get(key)? {
                return Ok(value);
            }
            if !backoff.sleep_until(deadline) {
                return Err(StoreError::Timeout { key: key.to_owned(), waited: start.elapsed() });
            }
        }
    }

    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        check_key(key)?;
        self.read(key)
    }

    fn add(&self, key: &str, n: i64) -> Result<i64, StoreError> {
        check_key(key)?;
        let _lock = self.lock()?;
        let sum = add_to_entry(key, self.read(key)?.as_deref(), n)?;
        self.write(key, sum.to_string().as_bytes())?;
        Ok(sum)
    }
}

const O_NOFOLLOW: i32 = nix::fcntl::OFlag::O_NOFOLLOW.bits();

fn io(call: &str, path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Io { what: format!("{call} {}", path.display()), message: error.to_string() }
}

/// `key-` and the key, where every byte but letters, digits, `-` and `_` is `%` and two hex digits.
/// Two keys never share a name: a long one ends in its digest.
fn file_name(key: &str) -> String {
    let mut name = String::from("key-");
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02x}");
        }
    }
    if name.len() > MAX_PLAIN_NAME {
        name.truncate(MAX_PLAIN_NAME - 70);
        name.push('~');
        for byte in digest(key.as_bytes()) {
            let _ = write!(name, "{byte:02x}");
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_directory_others_may_write_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let open = directory.path().join("open");
        std::fs::create_dir(&open).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(&open, mode).unwrap();
        let error = FileStore::open(&open).unwrap_err();
        assert!(error.to_string().contains("chmod 700"), "{error}");
        assert!(FileStore::open(&directory.path().join("new/one")).is_ok());
    }

    #[test]
    fn files_are_private_and_nothing_unfinished_stays() {
        let directory = tempfile::tempdir().unwrap();
        let store = FileStore::open(directory.path()).unwrap();
        store.set("a/../b", b"x").unwrap();
        store.set("a/../b", b"y").unwrap();
        let names: Vec<_> =
            std::fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap()).collect();
        assert_eq!(names.len(), 1);
        assert_eq!(names[0].file_name(), "key-a%2f%2e%2e%2fb");
        assert_eq!(names[0].metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(store.try_get("a/../b").unwrap().unwrap(), b"y");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn names_are_short_and_differ(one in ".{1,300}", two in ".{1,300}") {
            let name = file_name(&one);
            prop_assert!(name.len() <= 255 && !name.contains('/') && name.starts_with("key-"));
            prop_assert_eq!(one == two, name == file_name(&two));
        }
    }
}
