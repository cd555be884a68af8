//! What the caller of an operation tells of it.

/// What is known of an operation when it is called.
#[derive(Clone, Copy, Debug)]
pub struct Called {
    /// Number in the table of kinds.
    pub kind: u8,
    /// Number in the table of types, or [`crate::layout::NO_WORD`].
    pub dtype: u8,
    /// Number in the table of reductions, or [`crate::layout::NO_WORD`].
    pub op: u8,
    /// Number in the table of paths, or [`crate::layout::NO_WORD`] where it is not known yet.
    pub path: u8,
    /// Root or peer, or [`crate::layout::NO_RANK`].
    pub with: u32,
    /// Tag of a message.
    pub tag: i32,
    /// Number of the operation on its communicator: no two have the same, and it never goes back.
    pub sequence: u64,
    /// Whether it is the next collective; only one thread at a time says so. An operation that
    /// waits for its turn gets its number by [`crate::Recorder::is_next_collective`].
    pub is_next_collective: bool,
    /// Bytes of the message on this rank.
    pub bytes: u64,
    /// Elements of one block.
    pub count: u64,
}

/// What is known of it when it starts.
#[derive(Clone, Copy, Debug)]
pub struct Started {
    /// Number in the table of paths, or [`crate::layout::NO_WORD`].
    pub path: u8,
    /// Number in the table of algorithms, or [`crate::layout::NO_WORD`].
    pub algorithm: u8,
    /// Pages in flight.
    pub depth: u16,
    /// Bytes of a page of one block; 0: none.
    pub page_bytes: u64,
    /// Queue it ran in.
    pub lane: u32,
}
