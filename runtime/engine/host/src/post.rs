//! One post of a board: words that say what it is, and data in the same cache lines.
//!
//! The number is written last and read first. Why that suffices is argued in
//! `Documentation/memory-model.md`, "Boards".

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use stepccl_engine::{Look, Part};

use crate::layout::{FLAG_STRIDE, POST_DATA};
use crate::post_words::{self, PostWords};

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
        post_words::look(self, number)
    }

    /// Write post `number`.
    ///
    /// # Safety
    ///
    /// - This rank alone writes the post, and nobody reads what stands there any more.
    /// - Every part is valid for reads, and all together fit into the post.
    #[inline]
    pub(crate) unsafe fn write(&self, number: u64, words: [u64; 2], parts: &[Part]) {
        let mut line = [0u64; FIRST_LINE / 8];
        let bytes = match parts {
            [part] if part.bytes <= FIRST_LINE => {
                // SAFETY:
                // - The part is valid for reads, and the line is as long at least.
                unsafe {
                    let to = line.as_mut_ptr().cast::<u8>();
                    to.copy_from_nonoverlapping(part.base, part.bytes);
                }
                part.bytes
            }
            // SAFETY:
            // - The caller upholds the contract.
            parts => unsafe { self.gather(&mut line, parts) },
        };
        let words_used = bytes.min(FIRST_LINE).div_ceil(8);
        post_words::show(self, number, words, &line[..words_used]);
    }
}

impl Post<'_> {
    /// Put the parts one behind the other: what belongs into the first line into `line`, the rest
    /// into the post. Returns their bytes.
    ///
    /// # Safety
    ///
    /// As for `write`.
    unsafe fn gather(&self, line: &mut [u64; FIRST_LINE / 8], parts: &[Part]) -> usize {
        let bytes = parts.iter().map(|p| p.bytes).sum();
        let mut end: usize = bytes;
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
        bytes
    }
}

impl PostWords for Post<'_> {
    #[inline]
    fn load_relaxed(&self, index: usize) -> u64 {
        self.word(index).load(Ordering::Relaxed)
    }

    #[inline]
    fn load_acquire(&self, index: usize) -> u64 {
        self.word(index).load(Ordering::Acquire)
    }

    #[inline]
    fn store_relaxed(&self, index: usize, value: u64) {
        self.word(index).store(value, Ordering::Relaxed);
    }

    #[inline]
    fn store_release(&self, index: usize, value: u64) {
        self.word(index).store(value, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::UnsafeCell;

    use super::*;

    const POST_BYTES: usize = 4 * FLAG_STRIDE;

    /// Memory of a board of two posts.
    #[repr(align(64))]
    struct Memory(UnsafeCell<[u8; 2 * POST_BYTES]>);

    // SAFETY:
    // - Posts order all accesses; that they do is what is tested.
    unsafe impl Sync for Memory {}

    impl Memory {
        const fn new() -> Self {
            Self(UnsafeCell::new([0; 2 * POST_BYTES]))
        }

        fn post(&self, number: u64) -> Post<'_> {
            let place = (number % 2) as usize * POST_BYTES;
            let base = NonNull::new(self.0.get().cast::<u8>()).unwrap();
            // SAFETY:
            // - The place lies in the memory, which lives as long, on a line of its own.
            unsafe { Post::at(base.add(place)) }
        }
    }

    fn data(bytes: usize, number: u64) -> Vec<u8> {
        (0..bytes).map(|at| (at as u64 * 31 + number) as u8).collect()
    }

    fn fetch(post: &Post<'_>, bytes: usize) -> Vec<u8> {
        let mut out = vec![0; bytes];
        // SAFETY:
        // - A post has so many bytes, and its number was seen.
        unsafe { out.as_mut_ptr().copy_from_nonoverlapping(post.data(), bytes) };
        out
    }

    #[test]
    fn parts_lie_one_behind_the_other_wherever_they_are_cut() {
        let memory = Memory::new();
        let post = memory.post(0);
        for bytes in [0, 1, 39, 40, 41, 100, POST_BYTES - POST_DATA] {
            for cut in [0, bytes / 3, bytes.min(40), bytes] {
                let number = (bytes * 7 + cut) as u64;
                let data = data(bytes, number);
                let (head, tail) = data.split_at(cut);
                let parts =
                    [head, tail].map(|part| Part { base: part.as_ptr(), bytes: part.len() });
                // SAFETY:
                // - The parts are those of the vector, and nobody else uses the post.
                unsafe { post.write(number, [number, 5], &parts) };
                assert_eq!(post.look(number), Look::Here([number, 5]));
                assert_eq!(post.look(number + 1), Look::Absent);
                assert_eq!(fetch(&post, bytes), data, "{bytes} bytes cut at {cut}");
            }
        }
    }

    /// Two ranks that answer one another, as collectives do. A place is written again when the other
    /// side has posted again, which it does when it has read what stands there.
    #[test]
    fn who_sees_the_number_sees_the_rest() {
        const ROUNDS: u64 = if cfg!(miri) { 12 } else { 2000 };
        let boards = [Memory::new(), Memory::new()];
        let play = |own: &Memory, theirs: &Memory| {
            for number in 0..ROUNDS {
                let bytes = (number as usize * 13) % (POST_BYTES - POST_DATA);
                let mine = data(bytes, number);
                let part = Part { base: mine.as_ptr(), bytes };
                // SAFETY:
                // - The part is the vector, and the other side has read what stands there: its
                //   last post was seen, and came after that.
                unsafe { own.post(number).write(number, [number, !number], &[part]) };
                while theirs.post(number).look(number) == Look::Absent {
                    std::thread::yield_now();
                }
                assert_eq!(theirs.post(number).look(number), Look::Here([number, !number]));
                assert_eq!(fetch(&theirs.post(number), bytes), mine);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| play(&boards[0], &boards[1]));
            scope.spawn(|| play(&boards[1], &boards[0]));
        });
    }
}
