//! The order in which the words of a post are written and read, over any memory.

use stepccl_engine::Look;

use crate::layout::POST_DATA;

/// Words of a post: its number, two that say what was called, then data.
pub trait PostWords {
    /// Value of a word, ordered with nothing.
    fn load_relaxed(&self, index: usize) -> u64;

    /// Value of a word; what its writer did before a release store of it is visible.
    fn load_acquire(&self, index: usize) -> u64;

    /// Set a word, ordered with nothing.
    fn store_relaxed(&self, index: usize, value: u64);

    /// Set a word after everything that this thread did before.
    fn store_release(&self, index: usize, value: u64);
}

/// What is there of post `number`.
#[inline]
pub fn look(post: &impl PostWords, number: u64) -> Look {
    let found = post.load_acquire(0);
    match found.cmp(&(number + 1)) {
        std::cmp::Ordering::Less => Look::Absent,
        std::cmp::Ordering::Equal => Look::Here([1, 2].map(|index| post.load_relaxed(index))),
        std::cmp::Ordering::Greater => Look::Past,
    }
}

/// Show post `number`, whose data beyond `data`, which begins it, stands already.
#[inline]
pub fn show(post: &impl PostWords, number: u64, words: [u64; 2], data: &[u64]) {
    // The line that readers look at all the time is written at one go, or they would take it
    // away in the middle.
    for (index, word) in data.iter().enumerate() {
        post.store_relaxed(POST_DATA / 8 + index, *word);
    }
    post.store_relaxed(1, words[0]);
    post.store_relaxed(2, words[1]);
    // Whoever sees the number sees the words, the data, and all this rank did before.
    post.store_release(0, number + 1);
}
