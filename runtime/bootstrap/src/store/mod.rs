//! The place all ranks can reach before they know one another.

mod error;
mod file;
mod memory;
mod prefix;
pub(crate) mod tcp;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

pub use error::StoreError;
pub use file::FileStore;
pub use memory::MemoryStore;
pub use prefix::PrefixStore;

/// Longest key in bytes.
pub const MAX_KEY_BYTES: usize = 1024;

/// Longest value in bytes; the table of 4096 ranks with the longest notes fits.
pub const MAX_VALUE_BYTES: usize = 32 << 20;

/// Keys and values that all ranks see. The operations are those of a c10d store.
///
/// A counter of [`Store::add`] is readable as decimal text. Keys are 1 to [`MAX_KEY_BYTES`] bytes,
/// values at most [`MAX_VALUE_BYTES`]; the implementations here refuse others with
/// [`StoreError::Key`] and [`StoreError::Value`].
pub trait Store: Send + Sync + fmt::Debug {
    /// Write `value`, whole or not at all, over what was there.
    ///
    /// # Errors
    ///
    /// The store cannot be reached or refuses.
    fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError>;

    /// Wait for `key` and read it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Timeout`] where it is not there at `deadline`; the store cannot be reached or
    /// refuses.
    fn get(&self, key: &str, deadline: Instant) -> Result<Vec<u8>, StoreError>;

    /// Read `key` where it is there, without waiting.
    ///
    /// # Errors
    ///
    /// The store cannot be reached or refuses.
    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Add `n` to a counter that starts at 0 and return the sum, at once for all ranks.
    ///
    /// # Errors
    ///
    /// [`StoreError::Counter`] where the entry is no number or the sum leaves 64 bits; the store
    /// cannot be reached or refuses.
    fn add(&self, key: &str, n: i64) -> Result<i64, StoreError>;
}

macro_rules! forward {
    ($($holder:ty),*) => {$(
        impl<S: Store + ?Sized> Store for $holder {
            fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
                (**self).set(key, value)
            }

            fn get(&self, key: &str, deadline: Instant) -> Result<Vec<u8>, StoreError> {
                (**self).get(key, deadline)
            }

            fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
                (**self).try_get(key)
            }

            fn add(&self, key: &str, n: i64) -> Result<i64, StoreError> {
                (**self).add(key, n)
            }
        }
    )*};
}

forward!(&S, Arc<S>, Box<S>);

/// Refuse a key that no implementation here takes.
fn check_key(key: &str) -> Result<(), StoreError> {
    if key.is_empty() || key.len() > MAX_KEY_BYTES {
        return Err(StoreError::Key { bytes: key.len() });
    }
    Ok(())
}

/// Refuse a value that no implementation here takes.
fn check_value(key: &str, value: &[u8]) -> Result<(), StoreError> {
    if value.len() > MAX_VALUE_BYTES {
        return Err(StoreError::Value { key: key.to_owned(), bytes: value.len() });
    }
    Ok(())
}

/// The sum of a counter entry, `None` being 0, and `n`.
fn add_to_entry(key: &str, entry: Option<&[u8]>, n: i64) -> Result<i64, StoreError> {
    let counter = |detail: String| StoreError::Counter { key: key.to_owned(), detail };
    let old = match entry {
        None => 0,
        Some(bytes) => std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| text.parse::<i64>().ok())
            .ok_or_else(|| counter(format!("{} bytes that are no number", bytes.len())))?,
    };
    old.checked_add(n).ok_or_else(|| counter(format!("{old} + {n} leaves 64 bits")))
}
