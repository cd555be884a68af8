//! Memory that packed collectives pass through, and the copies into and out of it.

/// Scratch of a communicator, used by one operation at a time.
#[derive(Debug, Default)]
pub(crate) struct Scratch(Vec<u128>);

impl Scratch {
    /// Make it at least `bytes` long; what was in it is of no use.
    pub fn reserve(&mut self, bytes: usize) {
        let words = bytes.div_ceil(size_of::<u128>());
        if self.0.len() < words {
            self.0 = vec![0; words];
        }
    }

    /// First byte, aligned for every element.
    pub fn base(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// Copy bytes that may be anywhere; nothing where both are the same.
///
/// # Safety
///
/// `from` must be valid for reads and `to` for writes of `bytes` bytes.
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    if bytes > 0 && from != to.cast_const() {
        // SAFETY:
        // - The caller promises that both are valid; overlap is allowed.
        unsafe { std::ptr::copy(from, to, bytes) };
    }
}
