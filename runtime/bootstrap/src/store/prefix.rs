//! A part of a store.

use std::time::Instant;

use super::{Store, StoreError};

/// All keys of a store that begin with `PREFIX/`.
#[derive(Clone, Debug)]
pub struct PrefixStore<S> {
    prefix: String,
    store: S,
}

impl<S: Store> PrefixStore<S> {
    /// The part of `store` below `prefix`.
    #[must_use]
    pub fn new(prefix: &str, store: S) -> Self {
        Self { prefix: prefix.to_owned(), store }
    }

    fn key(&self, key: &str) -> Result<String, StoreError> {
        if key.is_empty() {
            return Err(StoreError::Key { bytes: 0 });
        }
        Ok(format!("{}/{key}", self.prefix))
    }
}

impl<S: Store> Store for PrefixStore<S> {
    fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.store.set(&self.key(key)?, value)
    }

    fn get(&self, key: &str, deadline: Instant) -> Result<Vec<u8>, StoreError> {
        self.store.get(&self.key(key)?, deadline)
    }

    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.try_get(&self.key(key)?)
    }

    fn add(&self, key: &str, n: i64) -> Result<i64, StoreError> {
        self.store.add(&self.key(key)?, n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStore;

    #[test]
    fn two_prefixes_do_not_meet() {
        let memory = MemoryStore::new();
        let (one, two) = (PrefixStore::new("one", &memory), PrefixStore::new("two", &memory));
        one.set("k", b"1").unwrap();
        assert_eq!(two.try_get("k").unwrap(), None);
        assert_eq!(two.add("k", 5).unwrap(), 5);
        assert_eq!(one.get("k", Instant::now()).unwrap(), b"1");
        assert_eq!(memory.try_get("one/k").unwrap().unwrap(), b"1");
        assert!(matches!(one.set("", b""), Err(StoreError::Key { bytes: 0 })));
    }
}
