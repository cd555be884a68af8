//! What an engine can do, and what it did.

/// What an engine can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Adds elements, so that `Operation::Reduce` works.
    pub reduces: bool,
    /// Reads and writes a peer's user memory, not only its staging.
    pub peer_user_memory: bool,
    /// Channels that move bytes beside the calling thread; 0: operations are done when submitted.
    pub channels: u32,
    /// Most sources of one reduce.
    pub max_reduce_sources: u32,
    /// Flags a rank has, `0 .. flags`.
    pub flags: u32,
}

/// What an engine did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes copied.
    pub copied_bytes: u64,
    /// Bytes of reduction results written.
    pub reduced_bytes: u64,
    /// Operations done on the calling thread.
    pub inline_operations: u64,
    /// Operations given to a channel.
    pub channel_operations: u64,
    /// Submissions answered with `Full`.
    pub full: u64,
    /// Times memory of a peer's process was read.
    pub pulls: u64,
    /// Bytes read so.
    pub pulled_bytes: u64,
    /// Times memory of a peer's process was written.
    pub pushes: u64,
    /// Bytes written so.
    pub pushed_bytes: u64,
    /// Short messages put up on boards.
    pub posts: u64,
    /// Bytes of their data.
    pub posted_bytes: u64,
    /// Signals raised.
    pub signals: u64,
    /// Times a park went to sleep in the kernel.
    pub sleeps: u64,
    /// Wake-ups sent to sleeping peers.
    pub wakes: u64,
}

impl Counters {
    /// Every counter with its name, always in the same order.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, u64); 14] {
        let Self {
            copied_bytes,
            reduced_bytes,
            inline_operations,
            channel_operations,
            full,
            posts,
            posted_bytes,
            signals,
            sleeps,
            wakes,
            pulls,
            pulled_bytes,
            pushes,
            pushed_bytes,
        } = *self;
        [
            ("copied_bytes", copied_bytes),
            ("reduced_bytes", reduced_bytes),
            ("inline_operations", inline_operations),
            ("channel_operations", channel_operations),
            ("full", full),
            ("posts", posts),
            ("posted_bytes", posted_bytes),
            ("signals", signals),
            ("sleeps", sleeps),
            ("wakes", wakes),
            ("pulls", pulls),
            ("pulled_bytes", pulled_bytes),
            ("pushes", pushes),
            ("pushed_bytes", pushed_bytes),
        ]
    }
}
