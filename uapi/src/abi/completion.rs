//! What comes back on the completion queue.

/// Bits of [`CompletionEntry::flags`].
pub mod flags {
    /// The result is -errno.
    pub const ERROR: u32 = 1 << 0;
    /// The CPU moved at least a part of the bytes.
    pub const CPU: u32 = 1 << 1;
    /// The proxy moved the bytes.
    pub const PROXY: u32 = 1 << 2;
}

/// `struct dma_engine_cqe`: completion entry.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompletionEntry {
    /// That of the submission entry.
    pub user_data: u64,
    /// Bytes moved, or -errno with [`flags::ERROR`].
    pub result: u32,
    /// Bits of [`flags`]; unknown ones are to be ignored.
    pub flags: u32,
}

const _: () = assert!(core::mem::size_of::<CompletionEntry>() == 16);

impl CompletionEntry {
    /// Words of 8 bytes of an entry.
    pub const WORDS: usize = 2;

    /// All `bytes` were moved.
    #[must_use]
    pub const fn moved(user_data: u64, bytes: u32) -> Self {
        Self { user_data, result: bytes, flags: 0 }
    }

    /// The operation failed with a positive `errno`.
    #[must_use]
    pub const fn failed(user_data: u64, errno: i32) -> Self {
        Self { user_data, result: errno.wrapping_neg() as u32, flags: flags::ERROR }
    }

    /// Bytes moved.
    ///
    /// # Errors
    ///
    /// The positive errno. A broken peer can send anything, so it may be a number that is none.
    pub const fn outcome(&self) -> Result<u32, i32> {
        if self.flags & flags::ERROR == 0 {
            Ok(self.result)
        } else {
            Err((self.result as i32).wrapping_neg())
        }
    }

    /// The entry as it lies in memory, in words of 8 bytes.
    #[must_use]
    pub const fn to_words(self) -> [u64; Self::WORDS] {
        let result = self.result.to_ne_bytes();
        let flags = self.flags.to_ne_bytes();
        [
            self.user_data,
            u64::from_ne_bytes([
                result[0], result[1], result[2], result[3], flags[0], flags[1], flags[2], flags[3],
            ]),
        ]
    }

    /// The entry that lies in memory as `words`. Every pattern of bits is one; nothing is checked.
    #[must_use]
    pub const fn from_words(words: [u64; Self::WORDS]) -> Self {
        let last = words[1].to_ne_bytes();
        Self {
            user_data: words[0],
            result: u32::from_ne_bytes([last[0], last[1], last[2], last[3]]),
            flags: u32::from_ne_bytes([last[4], last[5], last[6], last[7]]),
        }
    }
}
