//! A ring between two threads of one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use stepccl_memory::{Segment, futex};

use crate::{Client, Doorbell, MappedRing, RingError, RingLayout, Service, Side};

/// Makes rings.
#[derive(Debug)]
pub struct Ring;

impl Ring {
    /// Both sides of a ring of `entries` submission slots and twice as many completion slots.
    ///
    /// Each side may go to a thread of its own. When one is dropped, the other one is woken and
    /// its waits say [`crate::Waited::Gone`].
    ///
    /// # Errors
    ///
    /// [`RingError::BadEntries`] where `entries` is not a power of two up to half of
    /// [`crate::MAX_ENTRIES`]; [`RingError::Memory`] where the system has no memory.
    pub fn in_process(entries: u32) -> Result<(Client<End>, Service<End>), RingError> {
        // Zero is no power of two, so a number too large to double is refused as it should be.
        let (layout, bytes) = RingLayout::of(entries, entries.checked_mul(2).unwrap_or(0))?;
        let segment = Segment::create("stepccl-ring", bytes as usize)?;
        let shared = Arc::new(Shared {
            ring: MappedRing::new(segment, layout)?,
            bells: [Bell::default(), Bell::default()],
        });
        let client = Arc::new(End { side: Side::Client, shared: shared.clone() });
        let service = Arc::new(End { side: Side::Service, shared });
        Ok((Client::new(client, &layout, 0)?, Service::new(service, &layout, 0)?))
    }
}

/// Counter that a side sleeps on, and whether that side has left.
#[derive(Debug, Default)]
struct Bell {
    count: AtomicU32,
    left: AtomicBool,
}

#[derive(Debug)]
struct Shared {
    ring: MappedRing,
    bells: [Bell; 2],
}

impl Shared {
    const fn bell(&self, side: Side) -> &Bell {
        &self.bells[side as usize]
    }

    fn ring(&self, side: Side) -> Result<(), RingError> {
        let count = &self.bell(side).count;
        // Release: with the new count the sleeper sees why it was woken.
        count.fetch_add(1, Ordering::Release);
        futex::wake(count, u32::MAX)?;
        Ok(())
    }
}

/// One end of a ring in the process; dropping it tells the other end.
#[derive(Debug)]
pub struct End {
    side: Side,
    shared: Arc<Shared>,
}

impl End {
    /// The ring as it lies in memory.
    #[must_use]
    pub fn mapped(&self) -> &MappedRing {
        &self.shared.ring
    }

    /// The other side of `side`.
    const fn other(side: Side) -> Side {
        match side {
            Side::Client => Side::Service,
            Side::Service => Side::Client,
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.shared.bell(self.side).left.store(true, Ordering::Release);
        // A wake-up that fails leaves the other side to the limit of its wait.
        let _ = self.shared.ring(Self::other(self.side));
    }
}

impl Doorbell for End {
    fn bell(&self, side: Side) -> u32 {
        self.shared.bell(side).count.load(Ordering::Acquire)
    }

    fn ring(&self, side: Side) -> Result<(), RingError> {
        self.shared.ring(side)
    }

    fn sleep(&self, side: Side, seen: u32, limit: Duration) -> Result<(), RingError> {
        futex::wait(&self.shared.bell(side).count, seen, limit)?;
        Ok(())
    }

    fn other_gone(&self, side: Side) -> bool {
        self.shared.bell(Self::other(side)).left.load(Ordering::Acquire)
    }
}

crate::memory::ring_memory_of!(End, mapped);
