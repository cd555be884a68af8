//! A record in a segment.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use stepccl_memory::Segment;

use crate::layout::{self, HEADER_BYTES, RECORD_WORDS};
use crate::{AtomicWords, RecordMemory};

/// Memory of a record, as a sealed memfd.
#[derive(Debug)]
pub(crate) struct Mapped(pub Segment);

impl Mapped {
    /// Copy whole words out, while other threads of this process write them. Whether they are there.
    pub fn read(&self, at: usize, bytes: &mut [u8]) -> bool {
        let (to, rest) = bytes.as_chunks_mut::<8>();
        let Ok(words) = self.0.view().atomic_u64s(at, to.len()) else { return false };
        for (to, word) in to.iter_mut().zip(words) {
            *to = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        rest.is_empty()
    }
}

impl RecordMemory for Mapped {
    type Header<'a> = &'a [AtomicU64];
    type Record<'a> = &'a [AtomicU64; RECORD_WORDS];

    #[inline]
    fn header(&self) -> Self::Header<'_> {
        // The segment is at least a header long and aligned to a page.
        self.0.view().atomic_u64s(0, HEADER_BYTES / 8).unwrap_or(&[])
    }

    #[inline]
    fn record(&self, place: u32) -> Option<Self::Record<'_>> {
        let at = layout::record_at(place as usize);
        self.0.view().atomic_u64s(at, RECORD_WORDS).ok()?.try_into().ok()
    }

    #[inline]
    fn fence_release(&self) {
        fence(Ordering::Release);
    }
}

macro_rules! atomic_words {
    ($words:ty) => {
        impl AtomicWords for $words {
            #[inline]
            fn load_relaxed(self, at: usize) -> u64 {
                self[at].load(Ordering::Relaxed)
            }

            #[inline]
            fn load_acquire(self, at: usize) -> u64 {
                self[at].load(Ordering::Acquire)
            }

            #[inline]
            fn store_relaxed(self, at: usize, value: u64) {
                self[at].store(value, Ordering::Relaxed);
            }

            #[inline]
            fn store_release(self, at: usize, value: u64) {
                self[at].store(value, Ordering::Release);
            }

            #[inline]
            fn exchange_acquire(self, at: usize, old: u64, new: u64) -> bool {
                self[at].compare_exchange(old, new, Ordering::Acquire, Ordering::Relaxed).is_ok()
            }

            #[inline]
            fn add(self, at: usize, more: u64) {
                self[at].fetch_add(more, Ordering::Relaxed);
            }
        }
    };
}

atomic_words!(&[AtomicU64]);
atomic_words!(&[AtomicU64; RECORD_WORDS]);
