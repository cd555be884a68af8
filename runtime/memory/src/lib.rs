//! Memory that other processes write: sealed memfd segments, volatile views, futex words.
//!
//! Two laws hold for every byte in here, because another process may change it at any moment:
//!
//! 1. **No references to it.** A `&[u8]` or `&u64` promises the compiler that the bytes hold
//!    still; these do not. The only references handed out are to atomics, which promise nothing.
//! 2. **Atomics, volatile reads or bulk copies only.** Words that order something are atomics;
//!    small facts are read once into a copy and the copy is checked; payload is copied in bulk by
//!    raw pointer. A bulk copy that races with a writer yields wrong bytes, which is for the
//!    protocol above to rule out; it yields nothing worse.
//!
//! A [`Segment`] is the memory, a [`View`] is a bounds-checked way to touch it, and [`futex`]
//! sleeps on a word of it.

mod device_mapping;
mod error;
pub mod futex;
mod segment;
mod view;

pub use device_mapping::DeviceMapping;
pub use error::MemoryError;
pub use segment::Segment;
pub use view::View;

/// Memory that others write, and that stays where it is while this lives.
pub trait Memory {
    /// All of it.
    fn view(&self) -> View<'_>;
}
