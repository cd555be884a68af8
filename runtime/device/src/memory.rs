//! What a ring needs of its memory.

use std::fmt;
use std::time::Duration;

use dma_engine_uapi::{CompletionEntry, SubmissionEntry};

use crate::RingError;

/// A word of the ring. Each has one writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Next entry the service takes. Written by the service.
    SqHead,
    /// Next slot the client fills. Written by the client.
    SqTail,
    /// `dma_engine_uapi::ring::sq_flags`. Written by the service.
    SqFlags,
    /// Next completion the client reads. Written by the client.
    CqHead,
    /// Next slot the service fills. Written by the service.
    CqTail,
    /// `dma_engine_uapi::ring::cq_flags`. Written by the client.
    CqFlags,
    /// Times that entries had to wait for a completion slot. Written by the service.
    CqStalls,
}

impl Word {
    /// All words; the place in it is the number of the word.
    pub const ALL: [Self; 7] = [
        Self::SqHead,
        Self::SqTail,
        Self::SqFlags,
        Self::CqHead,
        Self::CqTail,
        Self::CqFlags,
        Self::CqStalls,
    ];

    /// Name in the ABI.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SqHead => "sq_head",
            Self::SqTail => "sq_tail",
            Self::SqFlags => "sq_flags",
            Self::CqHead => "cq_head",
            Self::CqTail => "cq_tail",
            Self::CqFlags => "cq_flags",
            Self::CqStalls => "cq_stalls",
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Memory of a ring that both sides touch.
///
/// Words are atomics. Entries are copied as a whole, word by word and each word once; a copy that
/// races with a writer has wrong content and does no other harm. Slots are below the number of
/// entries of their queue.
///
/// # Errors
///
/// All methods: [`RingError::Memory`] where a place is outside the memory, which an implementation
/// over a checked layout never says.
pub trait RingMemory {
    /// Value of a word, ordered with nothing.
    fn load_relaxed(&self, word: Word) -> Result<u32, RingError>;

    /// Value of a word; what its writer did before a release store of it is visible.
    fn load_acquire(&self, word: Word) -> Result<u32, RingError>;

    /// Set a word, ordered with nothing.
    fn store_relaxed(&self, word: Word, value: u32) -> Result<(), RingError>;

    /// Set a word after everything that this thread did before.
    fn store_release(&self, word: Word, value: u32) -> Result<(), RingError>;

    /// Order everything before against everything after, with all other such fences.
    fn fence(&self);

    /// Copy out the submission entry of a slot.
    fn read_submission(&self, slot: u32) -> Result<[u64; SubmissionEntry::WORDS], RingError>;

    /// Copy in the submission entry of a slot.
    fn write_submission(
        &self,
        slot: u32,
        words: [u64; SubmissionEntry::WORDS],
    ) -> Result<(), RingError>;

    /// Copy out the completion of a slot.
    fn read_completion(&self, slot: u32) -> Result<[u64; CompletionEntry::WORDS], RingError>;

    /// Copy in the completion of a slot.
    fn write_completion(
        &self,
        slot: u32,
        words: [u64; CompletionEntry::WORDS],
    ) -> Result<(), RingError>;
}

/// One of the two sides of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Submits entries and reads completions.
    Client,
    /// Takes entries and posts completions.
    Service,
}

/// Memory over which a side can sleep until the other one rings.
///
/// A bell is a counter. Whoever is to sleep reads it first, then looks for work, and sleeps only
/// while the bell has the value read: a ring in between is never slept through.
pub trait Doorbell: RingMemory {
    /// Value of the bell of `side`; what was done before a ring is visible with its value.
    fn bell(&self, side: Side) -> u32;

    /// Move the bell of `side` and wake it.
    ///
    /// # Errors
    ///
    /// The system refused to wake.
    fn ring(&self, side: Side) -> Result<(), RingError>;

    /// Sleep while the bell of `side` is `seen`, at most `limit`. May return early.
    ///
    /// # Errors
    ///
    /// The system refused to wait.
    fn sleep(&self, side: Side, seen: u32, limit: Duration) -> Result<(), RingError>;

    /// Whether the side other than `side` will do nothing more.
    fn other_gone(&self, side: Side) -> bool;
}

/// `RingMemory` for a type that reaches a mapped ring by a method.
macro_rules! ring_memory_of {
    ($type:ty, $mapped:ident) => {
        impl $crate::RingMemory for $type {
            fn load_relaxed(&self, word: $crate::Word) -> Result<u32, $crate::RingError> {
                self.$mapped().load_relaxed(word)
            }

            fn load_acquire(&self, word: $crate::Word) -> Result<u32, $crate::RingError> {
                self.$mapped().load_acquire(word)
            }

            fn store_relaxed(
                &self,
                word: $crate::Word,
                value: u32,
            ) -> Result<(), $crate::RingError> {
                self.$mapped().store_relaxed(word, value)
            }

            fn store_release(
                &self,
                word: $crate::Word,
                value: u32,
            ) -> Result<(), $crate::RingError> {
                self.$mapped().store_release(word, value)
            }

            fn fence(&self) {
                self.$mapped().fence();
            }

            fn read_submission(
                &self,
                slot: u32,
            ) -> Result<[u64; $crate::SubmissionEntry::WORDS], $crate::RingError> {
                self.$mapped().read_submission(slot)
            }

            fn write_submission(
                &self,
                slot: u32,
                words: [u64; $crate::SubmissionEntry::WORDS],
            ) -> Result<(), $crate::RingError> {
                self.$mapped().write_submission(slot, words)
            }

            fn read_completion(
                &self,
                slot: u32,
            ) -> Result<[u64; $crate::CompletionEntry::WORDS], $crate::RingError> {
                self.$mapped().read_completion(slot)
            }

            fn write_completion(
                &self,
                slot: u32,
                words: [u64; $crate::CompletionEntry::WORDS],
            ) -> Result<(), $crate::RingError> {
                self.$mapped().write_completion(slot, words)
            }
        }
    };
}

pub(crate) use ring_memory_of;
