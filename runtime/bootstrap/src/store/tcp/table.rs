//! The entries of a server. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use crate::StoreError;
use crate::store::add_to_entry;

/// Cost of an entry beyond its key and value, in bytes, roughly.
const ENTRY_BYTES: usize = 128;

/// Keys and values, at most a number of bytes of them.
#[derive(Debug)]
pub(super) struct Table {
    entries: HashMap<String, Arc<[u8]>>,
    bytes: usize,
    most: usize,
}

impl Table {
    pub(super) fn new(most: usize) -> Self {
        Self { entries: HashMap::new(), bytes: 0, most }
    }

    pub(super) fn get(&self, key: &str) -> Option<Arc<[u8]>> {
        self.entries.get(key).cloned()
    }

    /// Bytes that may still be added.
    pub(super) const fn room(&self) -> usize {
        self.most - self.bytes
    }

    pub(super) fn set(&mut self, key: String, value: &[u8]) -> Result<(), StoreError> {
        let cost = |value: usize| ENTRY_BYTES + key.len() + value;
        let old = self.entries.get(&key).map_or(0, |old| cost(old.len()));
        let bytes = self.bytes - old + cost(value.len());
        if bytes > self.most {
            return Err(StoreError::Other(format!(
                "key {key:?}: {} bytes do not fit, the store holds {} of {} bytes; raise its limit",
                value.len(),
                self.bytes,
                self.most,
            )));
        }
        self.bytes = bytes;
        self.entries.insert(key, value.into());
        Ok(())
    }

    pub(super) fn add(&mut self, key: String, n: i64) -> Result<i64, StoreError> {
        let sum = add_to_entry(&key, self.entries.get(&key).map(AsRef::as_ref), n)?;
        self.set(key, sum.to_string().as_bytes())?;
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_refuses_and_keeps_what_it_has() {
        let mut table = Table::new(400);
        table.set("a".to_owned(), &[1; 200]).unwrap();
        assert_eq!(table.room(), 400 - 128 - 1 - 200);
        assert!(table.set("b".to_owned(), &[1; 10]).is_err());
        assert!(table.add("c".to_owned(), 1).is_err());
        table.set("a".to_owned(), &[2; 20]).unwrap();
        table.set("b".to_owned(), &[1; 10]).unwrap();
        assert_eq!(table.get("a").unwrap()[..], [2; 20]);
    }
}
