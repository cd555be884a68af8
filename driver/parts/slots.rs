// SPDX-License-Identifier: GPL-2.0

//! Region ids: slots with a generation, and the queue of free ones.

use crate::abi::address::{generation_of, next_generation, region_id, slot_of};

/// Most regions that ids can tell apart.
pub const MAX_SLOTS: u32 = 1 << crate::abi::address::REGION_SLOT_BITS;

/// No slot.
const NONE: u32 = u32::MAX;

/// One slot of a table; the table keeps what it holds beside it.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    generation: u32,
    /// Next in the queue of free slots.
    next: u32,
    used: bool,
}

impl Slot {
    /// A slot that was never used and is in no queue.
    pub const fn new() -> Self {
        Self { generation: 1, next: NONE, used: false }
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self::new()
    }
}

/// The queue of free slots of a table: first freed, first used again.
#[derive(Clone, Copy, Debug)]
pub struct Free {
    first: u32,
    last: u32,
    count: u32,
}

impl Default for Free {
    fn default() -> Self {
        Self::new()
    }
}

impl Free {
    /// An empty queue.
    pub const fn new() -> Self {
        Self { first: NONE, last: NONE, count: 0 }
    }

    /// Free slots.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Put a slot, new or used no more, to the end of the queue.
    pub fn put(&mut self, slots: &mut [Slot], slot: u32) {
        let Some(entry) = slots.get_mut(slot as usize) else {
            return;
        };
        entry.next = NONE;
        match slots.get_mut(self.last as usize) {
            Some(last) => last.next = slot,
            None => self.first = slot,
        }
        self.last = slot;
        self.count += 1;
    }

    /// Take the slot that was freed first into use: its id. `None` where none is free.
    pub fn take(&mut self, slots: &mut [Slot]) -> Option<u32> {
        let slot = self.first;
        let entry = slots.get_mut(slot as usize)?;
        self.first = entry.next;
        if self.first == NONE {
            self.last = NONE;
        }
        self.count -= 1;
        entry.next = NONE;
        entry.used = true;
        region_id(slot, entry.generation)
    }

    /// End the use of an id, which names nothing from then on: its slot. `None` for a stale one.
    pub fn end(&mut self, slots: &mut [Slot], id: u32) -> Option<u32> {
        let slot = find(slots, id)?;
        let entry = slots.get_mut(slot as usize)?;
        entry.used = false;
        entry.generation = next_generation(entry.generation);
        self.put(slots, slot);
        Some(slot)
    }
}

/// Slot of an id that is in use.
pub fn find(slots: &[Slot], id: u32) -> Option<u32> {
    let slot = slot_of(id);
    match slots.get(slot as usize) {
        Some(entry) if entry.used && entry.generation == generation_of(id) => Some(slot),
        _ => None,
    }
}
