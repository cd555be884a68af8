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
    #[inline]
    pub(crate) fn check(
        &self,
        name: &'static str,
        blocks: u32,
        block_bytes: usize,
    ) -> Result<(), Error> {
        match self {
            _ if blocks == 0 || block_bytes == 0 => Ok(()),
            Self::Contiguous(base) if !base.is_null() => Ok(()),
            Self::Blocks(list)
                if list.len() == blocks as usize && list.iter().all(|p| !p.is_null()) =>
            {
                Ok(())
            }
            _ => Err(self.unfit(name, blocks, block_bytes)),
        }
    }

    /// Why it cannot hold them.
    #[cold]
    fn unfit(&self, name: &'static str, blocks: u32, block_bytes: usize) -> Error {
        match self {
            Self::None => {
                let rule = format!("this rank needs {blocks} block(s) of {block_bytes} bytes");
                Error::invalid(name, "none", rule)
            }
            Self::Blocks(list) if list.len() != blocks as usize => {
                let rule =
                    format!("must be one pointer for all blocks or one for each of {blocks}");
                Error::invalid(name, format_args!("{} blocks", list.len()), rule)
            }
            _ => Error::invalid(name, "null", "must point to memory"),
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
        let (list, in_one) = match self {
            Self::None => (&[][..], 0),
            Self::Contiguous(base) => (std::slice::from_ref(base), blocks),
            Self::Blocks(blocks) => (&blocks[..], 1),
        };
        list.iter().map(move |p| range(*p, in_one, block_bytes))
    }
}

/// Byte range of blocks that lie in one piece, `(start, end)`.
pub(crate) fn range(base: *mut u8, blocks: u32, block_bytes: usize) -> (usize, usize) {
    let bytes = block_bytes.saturating_mul(blocks as usize);
    (base.addr(), base.addr().saturating_add(bytes))
}
