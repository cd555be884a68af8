//! Transfers with one peer that are not done yet: who waits for which bytes. No IO.

use std::collections::HashMap;

use crate::area::Area;

/// Most transfers with one peer at once; a peer may count on it.
pub(crate) const MAX_TRANSFERS: usize = 64;

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the peer's staging.
    Fetch,
    /// To the peer's staging.
    Store,
}

/// One transfer under way.
#[derive(Debug)]
struct Transfer {
    way: Way,
    memory: Area,
    /// Bytes whose payload was announced (a fetch) or that are acknowledged (a store).
    known: u64,
    /// Bytes that have arrived.
    done: u64,
    job: u64,
}

/// Answer to a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Started {
    /// Ask the peer, with this id.
    Id(u32),
    /// There are too many; try again when one has ended.
    Full,
    /// The peer is gone, or all was cancelled.
    Closed,
}

/// Transfers with one peer.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    under_way: HashMap<u32, Transfer>,
    next: u32,
    closed: bool,
}

impl Transfers {
    /// Enter a transfer of `memory`, which stays valid until the transfer has ended.
    pub(crate) fn start(&mut self, way: Way, memory: Area, job: u64) -> Started {
        if self.closed {
            return Started::Closed;
        }
        if self.under_way.len() >= MAX_TRANSFERS {
            return Started::Full;
        }
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        self.under_way.insert(id, Transfer { way, memory, known: 0, done: 0, job });
        Started::Id(id)
    }

    /// The peer announces `bytes` bytes of fetch `id`.
    ///
    /// # Errors
    ///
    /// What is wrong with that.
    pub(crate) fn announce(&mut self, id: u32, bytes: u64) -> Result<(), String> {
        match self.under_way.get_mut(&id) {
            Some(transfer) if transfer.way == Way::Fetch => {
                let (known, due) = (transfer.known + bytes, transfer.memory.bytes());
                if known > due {
                    return Err(format!("{known} bytes of a read of {due}"));
                }
                transfer.known = known;
                Ok(())
            }
            // What was cancelled here may still be under way.
            None if self.closed => Ok(()),
            _ => Err(format!("an answer to read {id}, which was not asked for")),
        }
    }

    /// Where the next bytes of fetch `id` go; nowhere where it was cancelled.
    pub(crate) fn place(&self, id: u32) -> Option<Area> {
        let transfer = self.under_way.get(&id)?;
        transfer.memory.part(transfer.done, transfer.known - transfer.done)
    }

    /// So many bytes are in the place; the job, where they were the last.
    pub(crate) fn arrived(&mut self, id: u32, bytes: u64) -> Option<u64> {
        let transfer = self.under_way.get_mut(&id)?;
        transfer.done += bytes;
        self.ended(id)
    }

    /// The peer has put `bytes` bytes of store `id` in place; the job, where they were the last.
    ///
    /// # Errors
    ///
    /// What is wrong with that.
    pub(crate) fn acknowledge(&mut self, id: u32, bytes: u64) -> Result<Option<u64>, String> {
        match self.under_way.get_mut(&id) {
            Some(transfer) if transfer.way == Way::Store => {
                let (done, due) = (transfer.done + bytes, transfer.memory.bytes());
                if done > due {
                    return Err(format!("an acknowledgement of {done} bytes of a write of {due}"));
                }
                transfer.done = done;
                Ok(self.ended(id))
            }
            None if self.closed => Ok(None),
            _ => Err(format!("an acknowledgement of write {id}, which was not sent")),
        }
    }

    /// End all transfers and take no more; the jobs they belong to.
    pub(crate) fn close(&mut self) -> Vec<u64> {
        self.closed = true;
        self.under_way.drain().map(|(_, transfer)| transfer.job).collect()
    }

    fn ended(&mut self, id: u32) -> Option<u64> {
        let transfer = self.under_way.get(&id)?;
        if transfer.done < transfer.memory.bytes() {
            return None;
        }
        self.under_way.remove(&id).map(|transfer| transfer.job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(bytes: u64) -> Area {
        // SAFETY:
        // - Nothing in these tests reads or writes through it.
        unsafe { Area::new(std::ptr::without_provenance_mut(4096), bytes) }
    }

    fn started(transfers: &mut Transfers, way: Way, bytes: u64, job: u64) -> u32 {
        match transfers.start(way, area(bytes), job) {
            Started::Id(id) => id,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_fetch_ends_with_its_last_byte_and_takes_no_more() {
        let mut transfers = Transfers::default();
        let id = started(&mut transfers, Way::Fetch, 10, 7);
        assert_eq!(transfers.announce(id, 6), Ok(()));
        assert_eq!(transfers.place(id).unwrap().bytes(), 6);
        assert_eq!(transfers.arrived(id, 4), None);
        assert_eq!(transfers.place(id).unwrap().bytes(), 2);
        assert_eq!(transfers.arrived(id, 2), None);
        assert!(transfers.announce(id, 5).unwrap_err().contains("11 bytes of a read of 10"));
        assert_eq!(transfers.announce(id, 4), Ok(()));
        assert_eq!(transfers.arrived(id, 4), Some(7));
        assert!(transfers.announce(id, 1).unwrap_err().contains("not asked for"));
    }

    #[test]
    fn acknowledgements_are_counted_and_lies_are_named() {
        let mut transfers = Transfers::default();
        let (store, fetch) = (
            started(&mut transfers, Way::Store, 10, 1),
            started(&mut transfers, Way::Fetch, 10, 2),
        );
        assert_eq!(transfers.acknowledge(store, 6), Ok(None));
        assert!(transfers.acknowledge(store, 5).unwrap_err().contains("11 bytes"));
        assert_eq!(transfers.acknowledge(store, 4), Ok(Some(1)));
        assert!(transfers.acknowledge(store, 1).is_err());
        assert!(transfers.acknowledge(fetch, 1).is_err());
        assert!(transfers.announce(store, 1).is_err());
    }

    #[test]
    fn there_is_a_bound_and_an_end() {
        let mut transfers = Transfers::default();
        let ids: Vec<u32> = (0..MAX_TRANSFERS as u64)
            .map(|job| started(&mut transfers, Way::Fetch, 1, job))
            .collect();
        assert_eq!(transfers.start(Way::Store, area(1), 99), Started::Full);
        let mut jobs = transfers.close();
        jobs.sort_unstable();
        assert_eq!(jobs, (0..64).collect::<Vec<_>>());
        assert_eq!(transfers.start(Way::Store, area(1), 99), Started::Closed);
        // Answers to what was cancelled are dropped.
        assert_eq!(transfers.announce(ids[0], 1), Ok(()));
        assert_eq!(transfers.place(ids[0]), None);
        assert_eq!(transfers.acknowledge(ids[1], 1), Ok(None));
    }
}
