//! The caller's buffers, as an operation holds them.

use crate::Error;

/// Where the blocks of an input or output are.
///
/// A pointer and no lifetime: whoever starts an operation promises that the memory stays valid
/// until the operation is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// This rank has no such buffer in this collective.
    None,
    /// All blocks one behind the other, from this byte on.
    Contiguous(*mut u8),
    /// Each block somewhere else.
    Blocks(Box<[*mut u8]>),
}

// SAFETY:
// - The pointers are numbers here; only an engine reads through them, under the contract of
//   `Engine::register`, which does not depend on the thread.
unsafe impl Send for Memory {}
// SAFETY:
// - As for `Send`: sharing it shares numbers.
unsafe impl Sync for Memory {}

impl Memory {
    /// The memory from a list of pointers: none, one for all blocks, or one for each block.
    #[must_use]
    pub fn from_pointers(pointers: &[usize]) -> Self {
        match pointers {
            [] => Self::None,
            [all] => Self::Contiguous(std::ptr::with_exposed_provenance_mut(*all)),
            many => Self::Blocks(
                many.iter().map(|&p| std::ptr::with_exposed_provenance_mut(p)).collect(),
            ),
        }
    }

    /// First byte of `block`.
    pub(crate) fn block(&self, block: u32, block_bytes: usize) -> Option<*mut u8> {
        match self {
            Self::None => None,
            Self::Contiguous(base) => {
                Some(base.wrapping_add((block as usize).wrapping_mul(block_bytes)))
            }
            Self::Blocks(blocks) => blocks.get(block as usize).copied(),
        }
    }

    /// Refuse what cannot hold `blocks` blocks of `block_bytes` bytes.
    pub(crate) fn check(
        &self,
        name: &'static str,
        blocks: u32,
        block_bytes: u64,
    ) -> Result<(), Error> {
        if blocks == 0 || block_bytes == 0 {
            return Ok(());
        }
        let pointer = |p: *mut u8| {
            if p.is_null() {
                return Err(Error::invalid(name, "null", "must point to memory"));
            }
            Ok(())
        };
        match self {
            Self::None => Err(Error::invalid(
                name,
                "none",
                format!("this rank needs {blocks} block(s) of {block_bytes} bytes"),
            )),
            Self::Contiguous(base) => pointer(*base),
            Self::Blocks(list) if list.len() == blocks as usize => {
                list.iter().try_for_each(|p| pointer(*p))
            }
            Self::Blocks(list) => Err(Error::invalid(
                name,
                format_args!("{} blocks", list.len()),
                format!("must be one pointer for all blocks or one for each of {blocks}"),
            )),
        }
    }

    /// First byte and length of each piece that lies in one.
    pub(crate) fn ranges_mut(
        &self,
        blocks: u32,
        block_bytes: usize,
    ) -> impl Iterator<Item = (*mut u8, usize)> + '_ {
        let (list, len) = match self {
            _ if blocks == 0 || block_bytes == 0 => (&[][..], 0),
            Self::None => (&[][..], 0),
            Self::Contiguous(base) => {
                (std::slice::from_ref(base), block_bytes.saturating_mul(blocks as usize))
            }
            Self::Blocks(blocks) => (&blocks[..], block_bytes),
        };
        list.iter().map(move |p| (*p, len))
    }

    /// Byte ranges of the blocks, `(start, end)`.
    pub(crate) fn ranges(
        &self,
        blocks: u32,
        block_bytes: usize,
    ) -> impl Iterator<Item = (usize, usize)> + '_ {
        let (list, len) = match self {
            Self::None => (&[][..], 0),
            Self::Contiguous(base) => {
                (std::slice::from_ref(base), block_bytes.saturating_mul(blocks as usize))
            }
            Self::Blocks(blocks) => (&blocks[..], block_bytes),
        };
        list.iter().map(move |p| (p.addr(), p.addr().saturating_add(len)))
    }
}
