//! Region and offset in one number.

use std::fmt;

use crate::EngineError;

/// Bits of an address that are the offset.
pub const OFFSET_BITS: u32 = 40;

/// Number of a region; 1 to 2^24 - 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegionId(u32);

impl RegionId {
    /// A region id, where `id` is in range.
    #[must_use]
    pub const fn new(id: u32) -> Option<Self> {
        if id == 0 || id >= 1 << (64 - OFFSET_BITS) { None } else { Some(Self(id)) }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for RegionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "region {}", self.0)
    }
}

/// Where bytes are: `region id << 40 | offset`. Never a virtual or a bus address.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address(u64);

impl Address {
    /// First byte of a region.
    #[must_use]
    pub const fn start_of(region: RegionId) -> Self {
        Self((region.0 as u64) << OFFSET_BITS)
    }

    /// This address moved by `bytes`.
    ///
    /// # Errors
    ///
    /// [`EngineError::OutOfBounds`] where the offset leaves 40 bits.
    pub const fn checked_add(self, bytes: u64) -> Result<Self, EngineError> {
        match self.offset().checked_add(bytes) {
            Some(offset) if offset < 1 << OFFSET_BITS => {
                Ok(Self((self.0 >> OFFSET_BITS) << OFFSET_BITS | offset))
            }
            _ => Err(EngineError::OutOfBounds {
                address: self,
                bytes,
                region_bytes: 1 << OFFSET_BITS,
            }),
        }
    }

    /// The number that stands in a descriptor.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// An address from the number of a descriptor; a zero region is refused at use.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// Region part, zero where there is none.
    #[must_use]
    pub const fn region(self) -> u32 {
        (self.0 >> OFFSET_BITS) as u32
    }

    /// Offset part in bytes.
    #[must_use]
    pub const fn offset(self) -> u64 {
        self.0 & ((1 << OFFSET_BITS) - 1)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:#x}", self.region(), self.offset())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
