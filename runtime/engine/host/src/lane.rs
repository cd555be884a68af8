//! The words of one rank's segment, at a fixed distance from one pointer.
//!
//! Flags are read in the innermost loop of every wait, so a lane keeps the raw base of the
//! mapping and this file, alone, turns offsets of the layout into atomics. The order of their
//! accesses is argued in `Documentation/memory-model.md`, "Flags and staging between ranks".

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use stepccl_engine::Board;
use stepccl_memory::{MemoryError, Segment, futex};

use crate::layout::{DOORBELL, Layout, PUSHING, SLEEPING, STATE};
use crate::post::Post;

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

    /// Place of a post, where the rank has that board.
    #[inline]
    pub(crate) fn post(&self, board: Board, number: u64) -> Option<Post<'_>> {
        let offset = self.layout.post(board, number)?;
        // SAFETY:
        // - Posts lie before staging, to which `new` checked the segment, at multiples of 64 from
        //   a page; the lane keeps the segment mapped.
        // - Every rank touches boards through `Post` and by copies of the kernels only.
        Some(unsafe { Post::at(self.base.add(offset)) })
    }

    /// What became of the rank.
    pub(crate) fn state(&self) -> &AtomicU64 {
        // SAFETY:
        // - The header lies before the flags, to the end of which `new` checked the segment.
        // - The offset is a multiple of 8 from a page; every rank uses it as an atomic only.
        unsafe { AtomicU64::from_ptr(self.base.add(STATE).as_ptr().cast()) }
    }

    /// 1 and the rank whose memory the rank of this lane writes, or is about to; 0: none.
    pub(crate) fn pushing(&self) -> &AtomicU64 {
        // SAFETY:
        // - The header lies before the flags, to the end of which `new` checked the segment.
        // - The offset is a multiple of 8 from a page; every rank uses it as an atomic only.
        unsafe { AtomicU64::from_ptr(self.base.add(PUSHING).as_ptr().cast()) }
    }

    /// The futex word on which the rank sleeps.
    pub(crate) fn doorbell(&self) -> &AtomicU32 {
        // SAFETY:
        // - The header lies before the flags, to the end of which `new` checked the segment.
        // - The offset is a multiple of 4 from a page; every rank uses it as an atomic only.
        unsafe { AtomicU32::from_ptr(self.base.add(DOORBELL).as_ptr().cast()) }
    }

    /// Not zero while the rank sleeps or is about to.
    #[inline]
    pub(crate) fn sleeping(&self) -> &AtomicU32 {
        // SAFETY:
        // - The header lies before the flags, to the end of which `new` checked the segment.
        // - The offset is a multiple of 4 from a page; every rank uses it as an atomic only.
        unsafe { AtomicU32::from_ptr(self.base.add(SLEEPING).as_ptr().cast()) }
    }

    /// Move the doorbell and wake the rank from its sleep.
    #[cold]
    pub(crate) fn ring(&self) -> Result<(), MemoryError> {
        self.doorbell().fetch_add(1, Ordering::Release);
        futex::wake(self.doorbell(), u32::MAX).map(drop)
    }

    /// Move the doorbell, so that a park in progress or to come returns; enter the kernel only if
    /// the rank sleeps.
    pub(crate) fn nudge(&self) -> Result<(), MemoryError> {
        self.doorbell().fetch_add(1, Ordering::Release);
        // Pairs with the fence of a parking rank: either it sees the doorbell moved, or this
        // thread sees it sleeping.
        fence(Ordering::SeqCst);
        if self.sleeping().load(Ordering::Relaxed) != 0 {
            futex::wake(self.doorbell(), u32::MAX)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("segment", &self.segment).finish_non_exhaustive()
    }
}
