//! Region and offset in one number, and what a region id is made of.

/// Bits of an address that are the offset.
pub const OFFSET_BITS: u32 = 40;
/// Bits of an address that are the region id.
pub const REGION_BITS: u32 = 24;
/// Low bits of a region id: the slot in the driver's table.
pub const REGION_SLOT_BITS: u32 = 14;
/// High bits of a region id: how often the slot was used.
pub const REGION_GENERATION_BITS: u32 = 10;
/// Largest region in bytes.
pub const MAX_REGION_BYTES: u64 = 1 << OFFSET_BITS;

const _: () = assert!(OFFSET_BITS + REGION_BITS == u64::BITS);
const _: () = assert!(REGION_SLOT_BITS + REGION_GENERATION_BITS == REGION_BITS);

const OFFSET_MASK: u64 = MAX_REGION_BYTES - 1;
const SLOT_MASK: u32 = (1 << REGION_SLOT_BITS) - 1;
const GENERATION_MASK: u32 = (1 << REGION_GENERATION_BITS) - 1;

/// Address of byte `offset` of `region`; `None` where one of them is too large, or no region.
#[must_use]
pub const fn address(region: u32, offset: u64) -> Option<u64> {
    if region == 0 || region >> REGION_BITS != 0 || offset > OFFSET_MASK {
        return None;
    }
    Some((region as u64) << OFFSET_BITS | offset)
}

/// Region part of an address.
#[must_use]
pub const fn region_of(address: u64) -> u32 {
    (address >> OFFSET_BITS) as u32
}

/// Offset part of an address, in bytes.
#[must_use]
pub const fn offset_of(address: u64) -> u64 {
    address & OFFSET_MASK
}

/// Whether `length` bytes at `offset` lie in a region of `region_bytes`. Cannot overflow.
#[must_use]
pub const fn in_region(offset: u64, length: u64, region_bytes: u64) -> bool {
    offset <= region_bytes && length <= region_bytes - offset
}

/// Whether two ranges of `length` bytes in the same region share a byte. Cannot overflow.
#[must_use]
pub const fn overlap(a: u64, b: u64, length: u64) -> bool {
    region_of(a) == region_of(b) && a.abs_diff(b) < length
}

/// Region id of a slot in its generation; `None` where one is out of range.
#[must_use]
pub const fn region_id(slot: u32, generation: u32) -> Option<u32> {
    if slot > SLOT_MASK || generation == 0 || generation > GENERATION_MASK {
        return None;
    }
    Some(generation << REGION_SLOT_BITS | slot)
}

/// Slot part of a region id.
#[must_use]
pub const fn slot_of(region: u32) -> u32 {
    region & SLOT_MASK
}

/// Generation part of a region id.
#[must_use]
pub const fn generation_of(region: u32) -> u32 {
    region >> REGION_SLOT_BITS & GENERATION_MASK
}

/// Generation that follows: never 0, so that no region id is.
#[must_use]
pub const fn next_generation(generation: u32) -> u32 {
    if generation >= GENERATION_MASK { 1 } else { generation + 1 }
}
