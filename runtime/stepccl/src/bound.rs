//! The caller's memory while an engine may use it.

use stepccl_engine::{Address, Engine, EngineError, RegionId, UserMemory};

use crate::Memory;

/// What an operation does with memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    Input,
    /// Written, past the caches where `streaming`.
    Output {
        streaming: bool,
    },
}

/// Regions of an operation's input or output.
#[derive(Debug, Default)]
pub(crate) enum Bound {
    #[default]
    None,
    One(RegionId),
    Each(Vec<RegionId>),
}

impl Bound {
    /// Register `blocks` blocks of `block_bytes` bytes.
    ///
    /// # Safety
    ///
    /// As [`Engine::register`] says, until `release`.
    pub unsafe fn register(
        memory: &Memory,
        blocks: u32,
        block_bytes: usize,
        direction: Direction,
        engine: &mut dyn Engine,
    ) -> Result<Self, EngineError> {
        let (writable, streaming) = match direction {
            Direction::Input => (false, false),
            Direction::Output { streaming } => (true, streaming),
        };
        let mut region = |base: *mut u8, bytes: usize| {
            // SAFETY:
            // - The caller of this function upholds the contract of `register`.
            unsafe {
                engine.register(UserMemory { base, bytes: bytes as u64, writable, streaming })
            }
        };
        if blocks == 0 || block_bytes == 0 {
            return Ok(Self::None);
        }
        match memory {
            Memory::None => Ok(Self::None),
            Memory::Contiguous(base) => {
                region(*base, block_bytes.saturating_mul(blocks as usize)).map(Self::One)
            }
            Memory::Blocks(list) => {
                let mut regions = Vec::with_capacity(list.len());
                for base in list {
                    match region(*base, block_bytes) {
                        Ok(id) => regions.push(id),
                        Err(error) => {
                            Self::Each(regions).release(engine)?;
                            return Err(error);
                        }
                    }
                }
                Ok(Self::Each(regions))
            }
        }
    }

    /// Address of byte `offset` of `block`.
    pub fn address(
        &self,
        block: u32,
        block_bytes: usize,
        offset: usize,
    ) -> Result<Address, EngineError> {
        let unknown = EngineError::UnknownRegion { address: Address::from_raw(0) };
        let (region, offset) = match self {
            Self::None => return Err(unknown),
            Self::One(region) => (*region, u64::from(block) * block_bytes as u64 + offset as u64),
            Self::Each(regions) => (*regions.get(block as usize).ok_or(unknown)?, offset as u64),
        };
        Address::start_of(region).checked_add(offset)
    }

    /// Unregister all.
    pub fn release(&mut self, engine: &mut dyn Engine) -> Result<(), EngineError> {
        match std::mem::take(self) {
            Self::None => Ok(()),
            Self::One(region) => engine.unregister(region),
            Self::Each(regions) => {
                let mut result = Ok(());
                for region in regions {
                    result = result.and(engine.unregister(region));
                }
                result
            }
        }
    }
}
