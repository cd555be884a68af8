//! What a reduction is asked to do.

/// The arguments of [`reduce`](super::reduce), less type and operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job<'a> {
    /// First byte of the result.
    pub(super) dst: *mut u8,
    /// First byte of each source; at least one.
    pub(super) srcs: &'a [*const u8],
    /// Number of elements.
    pub(super) count: usize,
    /// At least 1.
    pub(super) divisor: u32,
}
