//! Boards: short messages that travel together with the word that says they are there.
//!
//! Every rank has a board for the collectives of its communicator and one for each peer it sends
//! to. A board has a few places, a power of two; post `number` stands at place `number % posts`,
//! so it takes the place of post `number - posts`. Who posts knows that nobody reads that one any
//! more. A post is two words, which say what was called, and a few bytes of data.

use stepccl_plan::{DType, ReduceOp};

/// One of the boards of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Board {
    /// What every rank reads.
    Collective,
    /// What is meant for this rank.
    Pair(u32),
}

/// Size of a board; the same for every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardShape {
    /// Places, a power of two.
    pub posts: u32,
    /// Most bytes of data in a post.
    pub bytes: usize,
}

/// What was found where a post should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// It is not there yet.
    Absent,
    /// It is there, with these two words.
    Here([u64; 2]),
    /// A later one has taken its place.
    Past,
}

/// Some of the caller's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// First byte.
    pub base: *const u8,
    /// How many.
    pub bytes: usize,
}

// SAFETY:
// - A part is a number and a length; whoever reads through it upholds the contract of
//   `Engine::post`, which is about the memory and not about the thread.
unsafe impl Send for Part {}

/// Some of the caller's bytes, to be written.
#[derive(Clone, Copy, Debug)]
pub struct PartMut {
    /// First byte.
    pub base: *mut u8,
    /// How many.
    pub bytes: usize,
}

/// How elements of posts are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combination {
    /// Elements.
    pub count: usize,
    /// Their type.
    pub dtype: DType,
    /// How they are combined, which must apply to the type; `Avg` and `PremulSum` combine like
    /// `Sum`.
    pub op: ReduceOp,
    /// Divide the result by this; 1 where nothing is to be divided.
    pub divisor: u32,
}
