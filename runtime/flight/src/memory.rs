//! What a writer needs of the memory of a record.

/// Words of a header or of one record, reached by their places in [`crate::layout`].
pub trait AtomicWords: Copy {
    /// Value of a word, ordered with nothing.
    fn load_relaxed(self, at: usize) -> u64;

    /// Value of a word; what its writer did before a release store of it is visible.
    fn load_acquire(self, at: usize) -> u64;

    /// Set a word, ordered with nothing.
    fn store_relaxed(self, at: usize, value: u64);

    /// Set a word after everything that this thread did before.
    fn store_release(self, at: usize, value: u64);

    /// Set a word to `new` if it is `old`, in one step, and load it with acquire. Whether it was.
    fn exchange_acquire(self, at: usize, old: u64, new: u64) -> bool;

    /// Add to a word in one step, ordered with nothing.
    fn add(self, at: usize, more: u64);
}

/// Memory of a record that this process writes and others read.
pub trait RecordMemory {
    /// Words of the header.
    type Header<'a>: AtomicWords
    where
        Self: 'a;
    /// Words of a record.
    type Record<'a>: AtomicWords
    where
        Self: 'a;

    /// The header.
    fn header(&self) -> Self::Header<'_>;

    /// The record at a place, if there is one.
    fn record(&self, place: u32) -> Option<Self::Record<'_>>;

    /// Order everything before against every later store.
    fn fence_release(&self);
}
