//! The words of one rank's segment, at a fixed distance from one pointer.
//!
//! Flags are read in the innermost loop of every wait, so a lane keeps the raw base of the
//! mapping and this file, alone, turns offsets of the layout into atomics. The order of their
//! accesses is argued in `Documentation/memory-model.md`, "Flags and staging between ranks".

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

use stepccl_engine::Board;
use stepccl_memory::{MemoryError, Segment, futex};

use crate::layout::{DOORBELL, Layout, PUSHING, SLEEPING, STATE};
use crate::post::Post;
use crate::words::LaneWords;

/// Mapped segment of one rank.
#[derive(Clone)]
pub(crate) struct Lane {
    base: NonNull<u8>,
    layout: Layout,
    segment: Arc<Segment>,
}

// SAFETY:
// - `base` points into `segment`, which the lane keeps alive and which may be used by any thread;
//   a lane reads and writes through it by atomics only.
unsafe impl Send for Lane {}
// SAFETY:
// - As for `Send`: no access of a lane needs to be alone.
unsafe impl Sync for Lane {}

impl Lane {
    /// Lane over a segment of `layout`; None where the segment is shorter.
    pub(crate) fn new(segment: Arc<Segment>, layout: Layout) -> Option<Self> {
        if segment.bytes() < layout.staging() {
            return None;
        }
        let base = NonNull::new(segment.base())?;
        Some(Self { base, layout, segment })
    }

    /// The segment.
    pub(crate) fn segment(&self) -> &Segment {
        &self.segment
    }

    /// A flag, where the rank has it.
    #[inline]
    pub(crate) fn flag(&self, index: u32) -> Option<&AtomicU64> {
        if index >= self.layout.flags() {
            return None;
        }
        // SAFETY:
        // - `index` is below the layout's flags, and `new` checked that the segment reaches to
        //   the end of them.
        // - The offset is a multiple of 64 from a page, so the word is aligned.
        // - Every rank touches flags as atomics only.
        Some(unsafe { AtomicU64::from_ptr(self.base.add(Layout::flag(index)).as_ptr().cast()) })
    }

    /// Place of a post, where the rank has that board and posts have `end` bytes of data.
    #[inline]
    pub(crate) fn post(&self, board: Board, number: u64, end: usize) -> Option<Post<'_>> {
        let offset = self.layout.post(board, number, end)?;
        // SAFETY:
        // - Posts lie before staging, to which `new` checked the segment, at multiples of 64 from
        //   a page; the lane keeps the segment mapped.
        // - Every rank touches boards through `Post` and by copies of the kernels only.
        Some(unsafe { Post::at(self.base.add(offset)) })
    }

    #[inline]
    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(matches!(offset, STATE | PUSHING));
        // SAFETY:
        // - The header lies before the flags, to the end of which `new` checked the segment.
        // - The offset is a multiple of 8 from a page; every rank uses the word as an atomic only.
        unsafe { AtomicU64::from_ptr(self.base.add(offset).as_ptr().cast()) }
    }

    #[inline]
    fn half(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(matches!(offset, DOORBELL | SLEEPING));
        // SAFETY:
        // - The header lies before the flags, to the end of which `new` checked the segment.
        // - The offset is a multiple of 4 from a page; every rank uses the word as an atomic only.
        unsafe { AtomicU32::from_ptr(self.base.add(offset).as_ptr().cast()) }
    }
}

impl LaneWords for Lane {
    #[inline]
    fn is_sleeping(&self) -> bool {
        self.half(SLEEPING).load(Ordering::Relaxed) != 0
    }

    #[inline]
    fn set_sleeping(&self, sleeping: bool) {
        self.half(SLEEPING).store(u32::from(sleeping), Ordering::Relaxed);
    }

    #[inline]
    fn doorbell(&self) -> u32 {
        self.half(DOORBELL).load(Ordering::Acquire)
    }

    fn move_doorbell(&self) {
        self.half(DOORBELL).fetch_add(1, Ordering::Release);
    }

    fn wake(&self) -> Result<(), MemoryError> {
        futex::wake(self.half(DOORBELL), u32::MAX).map(drop)
    }

    fn wait(&self, seen: u32, limit: Duration) -> Result<(), MemoryError> {
        futex::wait(self.half(DOORBELL), seen, limit).map(drop)
    }

    fn state(&self) -> u64 {
        self.word(STATE).load(Ordering::Acquire)
    }

    fn set_state(&self, state: u64) {
        self.word(STATE).store(state, Ordering::Release);
    }

    fn pushing(&self) -> u64 {
        self.word(PUSHING).load(Ordering::Acquire)
    }

    fn begin_push(&self, pushing: u64) {
        self.word(PUSHING).store(pushing, Ordering::Relaxed);
    }

    fn end_push(&self) {
        self.word(PUSHING).store(0, Ordering::Release);
    }

    #[inline]
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("segment", &self.segment).finish_non_exhaustive()
    }
}
