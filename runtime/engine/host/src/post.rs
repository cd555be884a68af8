//! One post of a board: words that say what it is, and data in the same cache lines.
//!
//! The number is written last and read first. Why that suffices is argued in
//! `Documentation/memory-model.md`, "Boards".

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use stepccl_engine::{Look, Part};

use crate::layout::{FLAG_STRIDE, POST_DATA};

/// Bytes of data that share the line of the number.
const FIRST_LINE: usize = FLAG_STRIDE - POST_DATA;

/// Place of a post in the segment of a rank.
#[derive(Clone, Copy)]
pub(crate) struct Post<'a> {
    base: NonNull<u8>,
    segment: PhantomData<&'a u8>,
}

impl Post<'_> {
    /// Post at `base`.
    ///
    /// # Safety
    ///
    /// - `base` is the place of a post in a segment that is mapped for all of the lifetime, and a
    ///   multiple of 64.
    /// - Every rank touches the post by atomics and by raw pointers only.
    pub(crate) const unsafe fn at(base: NonNull<u8>) -> Self {
        Self { base, segment: PhantomData }
    }

    #[inline]
    fn word(&self, index: usize) -> &AtomicU64 {
        // SAFETY:
        // - A post has at least a line of eight words, and its base is a multiple of 64, by the contract of
        //   `at`.
        unsafe { AtomicU64::from_ptr(self.base.add(index * 8).as_ptr().cast()) }
    }

    /// First byte of the data.
    #[inline]
    pub(crate) fn data(&self) -> *mut u8 {
        // Within the post, by the contract of `at`.
        self.base.as_ptr().wrapping_add(POST_DATA)
    }

    /// It will be looked at soon.
    #[inline]
    pub(crate) fn prefetch(&self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY:
        // - SSE is part of x86_64, and a hint reads nothing.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(self.base.as_ptr().cast());
        }
    }

    /// What is there of post `number`.
    #[inline]
    pub(crate) fn look(&self, number: u64) -> Look {
        let found = self.word(0).load(Ordering::Acquire);
        match found.cmp(&(number + 1)) {
            std::cmp::Ordering::Less => Look::Absent,
            std::cmp::Ordering::Equal => {
                Look::Here([1, 2].map(|i| self.word(i).load(Ordering::Relaxed)))
            }
            std::cmp::Ordering::Greater => Look::Past,
        }
    }

    /// Write post `number`.
    ///
    /// # Safety
    ///
    /// - This rank alone writes the post, and nobody reads what stands there any more.
    /// - Every part is valid for reads, and all together fit into the post.
    #[inline]
    pub(crate) unsafe fn write(&self, number: u64, words: [u64; 2], parts: &[Part]) {
        let mut end: usize = parts.iter().map(|p| p.bytes).sum();
        let mut line = [0u64; FIRST_LINE / 8];
        let words_used = end.min(FIRST_LINE).div_ceil(8);
        for part in parts.iter().rev() {
            let start = end - part.bytes;
            let first = FIRST_LINE.saturating_sub(start).min(part.bytes);
            // SAFETY:
            // - `first` is at most the part's length, and what it counts lies in the first line;
            //   the rest lies in the part and in the post.
            // - Nobody else writes the post, and no reference to it exists, so that the caller's
            //   memory is apart from it.
            unsafe {
                if first < part.bytes {
                    let (from, to) = (part.base.add(first), self.data().add(start + first));
                    to.copy_from_nonoverlapping(from, part.bytes - first);
                }
                if first > 0 {
                    let to = line.as_mut_ptr().cast::<u8>().add(start);
                    to.copy_from_nonoverlapping(part.base, first);
                }
            }
            end = start;
        }
        // The line that readers look at all the time is written at one go, or they would take it
        // away in the middle.
        for (index, word) in line[..words_used].iter().enumerate() {
            self.word(POST_DATA / 8 + index).store(*word, Ordering::Relaxed);
        }
        self.word(1).store(words[0], Ordering::Relaxed);
        self.word(2).store(words[1], Ordering::Relaxed);
        // Whoever sees the number sees the words, the data, and all this rank did before.
        self.word(0).store(number + 1, Ordering::Release);
    }
}
