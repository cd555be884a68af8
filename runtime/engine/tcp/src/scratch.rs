//! Memory for what is fetched before it is added. Bounded; made when it is first needed.

use stepccl_engine::{Address, Engine, EngineError, UserMemory};
use stepccl_engine_host::HostEngine;

use crate::area::Area;

/// Bytes of one slab.
pub(crate) const SLAB_BYTES: usize = 512 << 10;
/// Most slabs.
const MAX_SLABS: usize = 8;

/// One piece of scratch memory.
#[derive(Debug)]
struct Slab {
    /// Words, so that elements of any type are aligned in it.
    memory: Box<[u64]>,
    start: Address,
}

/// Scratch memory of an engine.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    slabs: Vec<Slab>,
    free: Vec<usize>,
}

impl Scratch {
    /// A slab that nobody uses; none where all are in use.
    ///
    /// # Errors
    ///
    /// [`EngineError::TooManyRegions`].
    pub(crate) fn take(&mut self, host: &mut HostEngine) -> Result<Option<usize>, EngineError> {
        if let Some(slab) = self.free.pop() {
            return Ok(Some(slab));
        }
        if self.slabs.len() == MAX_SLABS {
            return Ok(None);
        }
        let mut memory = vec![0u64; SLAB_BYTES / 8].into_boxed_slice();
        let base = memory.as_mut_ptr().cast();
        let user = UserMemory { base, bytes: SLAB_BYTES as u64, writable: true, streaming: false };
        // SAFETY:
        // - The slab lives as long as the engine, and nothing makes a reference to its contents.
        let region = unsafe { host.register(user) }?;
        self.slabs.push(Slab { memory, start: Address::start_of(region) });
        Ok(Some(self.slabs.len() - 1))
    }

    /// Give a slab back that no transfer uses.
    pub(crate) fn put(&mut self, slab: usize) {
        self.free.push(slab);
    }

    /// Address and memory of `bytes` bytes at `offset` of a slab.
    ///
    /// # Errors
    ///
    /// [`EngineError::OutOfBounds`].
    pub(crate) fn part(
        &mut self,
        slab: usize,
        offset: u64,
        bytes: u64,
    ) -> Result<(Address, Area), EngineError> {
        let nowhere = EngineError::OutOfBounds {
            address: Address::from_raw(0),
            bytes,
            region_bytes: SLAB_BYTES as u64,
        };
        let Some(slab) = self.slabs.get_mut(slab) else { return Err(nowhere) };
        // SAFETY:
        // - The slab lives as long as the engine, which ends its transfers before.
        let whole = unsafe { Area::new(slab.memory.as_mut_ptr().cast(), SLAB_BYTES as u64) };
        let area = whole.part(offset, bytes).ok_or(nowhere)?;
        Ok((slab.start.checked_add(offset)?, area))
    }
}
