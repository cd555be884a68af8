//! Which memory an address means.
//!
//! One thread registers; channels look up at the same time. An id is a slot and a generation:
//! slots are reused late, and then under another generation, so a stale address is found out
//! rather than led to memory of somebody else.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use stepccl_engine::{Address, EngineError, RegionId, UserMemory};

const SLOT_BITS: u32 = 16;
const SLOTS: u32 = 1 << SLOT_BITS;
const CHUNK_SLOTS: u32 = 1024;
const CHUNKS: usize = (SLOTS / CHUNK_SLOTS) as usize;
const GENERATIONS: u32 = 1 << (24 - SLOT_BITS);
/// Freed slots that are left alone before the oldest is used again.
const QUARANTINE: usize = 64;
/// Longest region, as an address has 40 bits of offset.
const MAX_REGION_BYTES: u64 = 1 << 40;
/// Bit of a slot's length word that says the region may be written.
const WRITABLE: u64 = 1 << 63;
/// Bit of a slot's length word that says writes may go past the caches.
const STREAMING: u64 = 1 << 62;

/// What is done to a range.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// One region; none by default.
#[derive(Debug, Default)]
struct Slot {
    /// Whole id of the region in this slot, 0 for none. Written last and read first.
    id: AtomicU32,
    /// Operations in progress that use the region; kept by the registering thread.
    busy: AtomicU32,
    base: AtomicPtr<u8>,
    length: AtomicU64,
}

type Chunk = Box<[Slot; CHUNK_SLOTS as usize]>;

/// Regions by id, for any thread to look up.
#[derive(Debug)]
pub(crate) struct RegionTable {
    chunks: [OnceLock<Chunk>; CHUNKS],
}

impl RegionTable {
    /// First of `bytes` bytes at `address`, which the region has and allows.
    #[inline]
    pub(crate) fn resolve(
        &self,
        address: Address,
        bytes: u64,
        access: Access,
    ) -> Result<*mut u8, EngineError> {
        let Some(slot) = self.slot(address.region()) else {
            return Err(EngineError::UnknownRegion { address });
        };
        let length = slot.length.load(Ordering::Relaxed);
        let region_bytes = length & !(WRITABLE | STREAMING);
        // Neither side overflows: an offset has 40 bits and a region at most 2^40 bytes.
        if bytes > region_bytes || address.offset() > region_bytes - bytes {
            return Err(EngineError::OutOfBounds { address, bytes, region_bytes });
        }
        if access == Access::Write && length & WRITABLE == 0 {
            return Err(EngineError::ReadOnly { address });
        }
        let base = slot.base.load(Ordering::Relaxed);
        // The offset fits: it lies in memory that is there.
        Ok(base.wrapping_add(address.offset() as usize))
    }

    /// Whether writes to the region of `address` may go past the caches.
    #[inline]
    pub(crate) fn is_streaming(&self, address: Address) -> bool {
        self.slot(address.region())
            .is_some_and(|slot| slot.length.load(Ordering::Relaxed) & STREAMING != 0)
    }

    /// Keep the region of `address` registered until `release`.
    pub(crate) fn hold(&self, address: Address) {
        if let Some(slot) = self.slot(address.region()) {
            slot.busy.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// End of one `hold`.
    pub(crate) fn release(&self, address: Address) {
        if let Some(slot) = self.slot(address.region()) {
            slot.busy.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Slot in which region `id` is registered now.
    #[inline]
    fn slot(&self, id: u32) -> Option<&Slot> {
        let place = id % SLOTS;
        let chunk = self.chunks[(place / CHUNK_SLOTS) as usize].get()?;
        let slot = &chunk[(place % CHUNK_SLOTS) as usize];
        (id != 0 && slot.id.load(Ordering::Acquire) == id).then_some(slot)
    }
}

/// The one side that registers.
#[derive(Debug)]
pub(crate) struct Registry {
    table: Arc<RegionTable>,
    /// Ids to give next in slots that were used before, oldest first.
    freed: VecDeque<u32>,
    /// First slot that was never used. Slot 0 never is, so that no address is 0.
    fresh: u32,
    /// Ids below are staging and stay.
    first_user: u32,
}

impl Registry {
    /// No regions.
    pub(crate) fn new() -> Self {
        let table = RegionTable { chunks: [const { OnceLock::new() }; CHUNKS] };
        Self { table: Arc::new(table), freed: VecDeque::new(), fresh: 1, first_user: 1 }
    }

    /// Regions for lookups.
    pub(crate) const fn table(&self) -> &Arc<RegionTable> {
        &self.table
    }

    /// Register memory of the engine that `unregister` refuses to forget. Before any user's.
    pub(crate) fn register_staging(&mut self, memory: UserMemory) -> Result<RegionId, EngineError> {
        let id = self.register(memory)?;
        self.first_user = self.fresh;
        Ok(id)
    }

    /// Give `memory` an id.
    pub(crate) fn register(&mut self, memory: UserMemory) -> Result<RegionId, EngineError> {
        let UserMemory { base, bytes, writable, streaming } = memory;
        let fits = usize::try_from(bytes).is_ok_and(|b| base.addr().checked_add(b).is_some());
        if bytes > MAX_REGION_BYTES || !fits || (base.is_null() && bytes > 0) {
            return Err(EngineError::BadRegion { base: base.addr(), bytes });
        }
        let id = self.next_id().ok_or(EngineError::TooManyRegions { limit: SLOTS - 1 })?;
        let place = id.get() % SLOTS;
        let chunk = self.table.chunks[(place / CHUNK_SLOTS) as usize]
            .get_or_init(|| Box::new(std::array::from_fn(|_| Slot::default())));
        let slot = &chunk[(place % CHUNK_SLOTS) as usize];
        slot.base.store(base, Ordering::Relaxed);
        let flags = (if writable { WRITABLE } else { 0 }) | (if streaming { STREAMING } else { 0 });
        slot.length.store(bytes | flags, Ordering::Relaxed);
        slot.id.store(id.get(), Ordering::Release);
        Ok(id)
    }

    /// Forget region `id`, if no operation uses it.
    pub(crate) fn unregister(&mut self, id: RegionId) -> Result<(), EngineError> {
        let unknown = || EngineError::UnknownRegion { address: Address::start_of(id) };
        let slot = self.table.slot(id.get()).ok_or_else(unknown)?;
        let (place, generation) = (id.get() % SLOTS, id.get() / SLOTS);
        if place < self.first_user {
            return Err(unknown());
        }
        if slot.busy.load(Ordering::Relaxed) != 0 {
            return Err(EngineError::RegionBusy { region: id.get() });
        }
        slot.id.store(0, Ordering::Release);
        self.freed.push_back((generation + 1) % GENERATIONS * SLOTS + place);
        Ok(())
    }

    fn next_id(&mut self) -> Option<RegionId> {
        let id = if self.fresh == SLOTS || self.freed.len() > QUARANTINE {
            self.freed.pop_front()?
        } else {
            self.fresh += 1;
            self.fresh - 1
        };
        RegionId::new(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(base: usize, bytes: u64) -> UserMemory {
        UserMemory {
            base: std::ptr::without_provenance_mut(base),
            bytes,
            writable: false,
            streaming: false,
        }
    }

    #[test]
    fn a_stale_id_is_unknown_for_thousands_of_reuses() {
        let mut registry = Registry::new();
        let stale = registry.register(memory(4096, 64)).unwrap();
        registry.unregister(stale).unwrap();
        for _ in 0..10_000 {
            let id = registry.register(memory(4096, 64)).unwrap();
            assert_ne!(id, stale);
            let looked_up = registry.table().resolve(Address::start_of(stale), 1, Access::Read);
            assert!(matches!(looked_up, Err(EngineError::UnknownRegion { .. })));
            registry.unregister(id).unwrap();
            let twice = registry.unregister(id);
            assert!(matches!(twice, Err(EngineError::UnknownRegion { .. })), "{twice:?}");
        }
        assert!(registry.fresh < 100, "slots are reused, so that lookups stay in cache");
    }

    #[test]
    fn every_slot_can_be_used_and_one_more_is_refused() {
        let mut registry = Registry::new();
        let ids: Vec<_> =
            (1..SLOTS).map(|at| registry.register(memory(at as usize, 1)).unwrap()).collect();
        let refused = registry.register(memory(1, 1));
        assert_eq!(refused, Err(EngineError::TooManyRegions { limit: SLOTS - 1 }));
        for (id, at) in ids.iter().zip(1..) {
            let first = registry.table().resolve(Address::start_of(*id), 1, Access::Read);
            assert_eq!(first.map(|pointer| pointer.addr()), Ok(at));
        }
        registry.unregister(ids[77]).unwrap();
        assert!(registry.register(memory(1, 1)).is_ok());
    }

    #[test]
    fn memory_that_cannot_be_is_refused() {
        let mut registry = Registry::new();
        for (base, bytes) in [(0, 1), (4096, MAX_REGION_BYTES + 1), (usize::MAX, 2)] {
            let refused = registry.register(memory(base, bytes));
            assert_eq!(refused, Err(EngineError::BadRegion { base, bytes }));
        }
        assert!(registry.register(memory(0, 0)).is_ok());
        assert!(registry.register(memory(4096, MAX_REGION_BYTES)).is_ok());
    }

    #[test]
    fn a_busy_region_stays_and_staging_always() {
        let mut registry = Registry::new();
        let staging = registry.register_staging(memory(4096, 64)).unwrap();
        let id = registry.register(memory(4096, 64)).unwrap();
        let address = Address::start_of(id);
        registry.table().hold(address);
        let refused = registry.unregister(id);
        assert_eq!(refused, Err(EngineError::RegionBusy { region: id.get() }));
        registry.table().release(address);
        assert_eq!(registry.unregister(id), Ok(()));
        assert!(matches!(registry.unregister(staging), Err(EngineError::UnknownRegion { .. })));
    }
}
