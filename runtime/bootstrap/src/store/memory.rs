//! A store for the threads of one process.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::{Store, StoreError, add_to_entry, check_key, check_value};

/// A store for the threads of one process; share it by reference or `Arc`.
#[derive(Debug, Default)]
pub struct MemoryStore {
    entries: Mutex<HashMap<String, Vec<u8>>>,
    changed: Condvar,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// No entry is ever half written under the lock, so a panicked holder does no harm.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<u8>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        check_key(key)?;
        check_value(key, value)?;
        self.lock().insert(key.to_owned(), value.to_vec());
        self.changed.notify_all();
        Ok(())
    }

    fn get(&self, key: &str, deadline: Instant) -> Result<Vec<u8>, StoreError> {
        check_key(key)?;
        let start = Instant::now();
        let mut entries = self.lock();
        loop {
            if let Some(value) = entries.get(key) {
                return Ok(value.clone());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(StoreError::Timeout { key: key.to_owned(), waited: start.elapsed() });
            }
            entries =
                self.changed.wait_timeout(entries, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        check_key(key)?;
        Ok(self.lock().get(key).cloned())
    }

    fn add(&self, key: &str, n: i64) -> Result<i64, StoreError> {
        check_key(key)?;
        let mut entries = self.lock();
        let sum = add_to_entry(key, entries.get(key).map(Vec::as_slice), n)?;
        entries.insert(key.to_owned(), sum.to_string().into_bytes());
        drop(entries);
        self.changed.notify_all();
        Ok(sum)
    }
}
