//! A copy within this rank's own memory: what a rank would send to itself.

use crate::context::Advance;
use crate::scratch;

/// Bytes copied before others get their turn.
const TURN_BYTES: usize = 1 << 20;

/// A copy under way.
#[derive(Debug)]
pub(crate) struct LocalTask {
    from: *const u8,
    to: *mut u8,
    bytes: usize,
}

// SAFETY:
// - The pointers are numbers here; whoever made the task promised that the memory is valid until
//   it is done, whatever the thread.
unsafe impl Send for LocalTask {}

impl LocalTask {
    /// # Safety
    ///
    /// `from` must be valid for reads and `to` for writes of `bytes` bytes until the task is done
    /// or dropped.
    pub const unsafe fn new(from: *const u8, to: *mut u8, bytes: usize) -> Self {
        Self { from, to, bytes }
    }

    pub fn advance(&mut self) -> Advance {
        let now = self.bytes.min(TURN_BYTES);
        // SAFETY:
        // - `new` was promised that what is left of both is valid.
        unsafe { scratch::copy(self.from, self.to, now) };
        self.from = self.from.wrapping_add(now);
        self.to = self.to.wrapping_add(now);
        self.bytes -= now;
        if self.bytes == 0 { Advance::Done } else { Advance::Moved }
    }
}
