//! The thread behind a channel: takes entries from a ring, moves bytes, posts completions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dma_engine_uapi::{CompletionEntry, SubmissionEntry, descriptor::opcode, status};
use stepccl_device::{Doorbell, End, RingError, Service, Side, Taken, Waited};
use stepccl_engine::{Address, EngineError};

use crate::check::{self, CheckedCopy};
use crate::kernel;
use crate::lane::Lane;
use crate::region::RegionTable;
use crate::sleep;

/// Looks at an empty ring before the thread sleeps. Some microseconds: long enough for a caller
/// that submits one copy after the other, too short to take a core from one that computes.
const SPINS: u32 = 50;
/// Longest sleep. A client rings for every entry, so this ends no wait that matters.
const NAP: Duration = Duration::from_secs(1);

/// What a worker needs.
#[derive(Debug)]
pub(crate) struct Worker {
    /// Its side of the ring.
    pub(crate) service: Service<End>,
    /// Regions, to check entries against.
    pub(crate) regions: Arc<RegionTable>,
    /// Words of this rank, to end its parks.
    pub(crate) own: Lane,
    /// Completions posted, for a park to compare with those reaped.
    pub(crate) posted: Arc<AtomicU64>,
}

impl Worker {
    /// Work until the client is gone. A ring that broke ends it too; the client sees that.
    pub(crate) fn run(mut self) {
        while let Ok(true) = self.turn() {}
    }

    /// Wait for one entry and do it; false where the client is gone.
    fn turn(&mut self) -> Result<bool, RingError> {
        for _ in 0..SPINS {
            // Asked first, so that a long queue does not hold up the end.
            if self.service.memory().other_gone(Side::Service) {
                return Ok(false);
            }
            if let Taken::Entry(entry) = self.service.take()? {
                let completion = execute(&self.regions, &entry);
                self.service.complete(&completion)?;
                self.posted.fetch_add(1, Ordering::Release);
                sleep::nudge(&self.own)?;
                return Ok(true);
            }
            std::hint::spin_loop();
        }
        Ok(self.service.wait(NAP)? != Waited::Gone)
    }
}

/// Do one entry, of a copy that nobody else can change.
fn execute(regions: &RegionTable, entry: &SubmissionEntry) -> CompletionEntry {
    match check(regions, entry) {
        Ok(copy) => {
            // SAFETY:
            // - Both ranges are in registered memory, and may be used so. The submitting side
            //   holds both regions until it has reaped the completion, so they stay valid.
            // - The ranges do not overlap.
            unsafe { kernel::copy(copy.dst, copy.src, copy.bytes) };
            CompletionEntry::moved(entry.user_data, entry.desc.length)
        }
        Err(errno) => CompletionEntry::failed(entry.user_data, errno),
    }
}

/// The copy that an entry asks for, or a positive errno.
fn check(regions: &RegionTable, entry: &SubmissionEntry) -> Result<CheckedCopy, i32> {
    entry.check(0).map_err(|rule| rule.errno())?;
    let desc = &entry.desc;
    // Channels of the process move bytes within it; what else an entry can ask for, the device
    // does.
    if !matches!(desc.opcode, opcode::READ | opcode::WRITE) || entry.flags != 0 {
        return Err(status::EOPNOTSUPP);
    }
    if (desc.src_node, desc.dst_node) != (0, 0) {
        return Err(status::EHOSTUNREACH);
    }
    let (src, dst) = (Address::from_raw(desc.src_addr), Address::from_raw(desc.dst_addr));
    check::copy(regions, src, dst, desc.length.into()).map_err(|error| match error {
        EngineError::UnknownRegion { .. } => status::ENOENT,
        EngineError::OutOfBounds { .. } => status::ERANGE,
        EngineError::ReadOnly { .. } => status::EACCES,
        _ => status::EINVAL,
    })
}

#[cfg(test)]
mod tests {
    use dma_engine_uapi::{Descriptor, submission};
    use stepccl_engine::{RegionId, UserMemory};

    use super::*;
    use crate::region::Registry;

    /// Two regions of 64 bytes, the first of which may not be written.
    fn regions(memory: &mut [u8; 128]) -> (Registry, RegionId, RegionId) {
        let mut registry = Registry::new();
        let base = memory.as_mut_ptr();
        let first = UserMemory { base, bytes: 64, writable: false, streaming: false };
        let second =
            UserMemory { base: base.wrapping_add(64), bytes: 64, writable: true, streaming: false };
        let first = registry.register(first).unwrap();
        let second = registry.register(second).unwrap();
        (registry, first, second)
    }

    fn entry(src: RegionId, dst: RegionId, length: u32) -> SubmissionEntry {
        SubmissionEntry {
            desc: Descriptor {
                src_addr: Address::start_of(src).raw(),
                dst_addr: Address::start_of(dst).raw(),
                length,
                opcode: opcode::WRITE,
                ..Descriptor::default()
            },
            user_data: 9,
            ..SubmissionEntry::default()
        }
    }

    #[test]
    fn a_good_entry_moves_its_bytes() {
        let mut memory = [7; 128];
        memory[64..].fill(0);
        let (registry, first, second) = regions(&mut memory);
        let done = execute(registry.table(), &entry(first, second, 40));
        assert_eq!(done, CompletionEntry::moved(9, 40));
        assert_eq!(memory[64..104], [7; 40]);
        assert_eq!(memory[104..], [0; 24]);
    }

    #[test]
    fn a_bad_entry_moves_nothing_and_says_why() {
        let mut memory = [7; 128];
        let (registry, first, second) = regions(&mut memory);
        let good = entry(first, second, 40);
        let never = RegionId::new(77).unwrap();
        let with = |change: fn(&mut SubmissionEntry)| {
            let mut entry = good;
            change(&mut entry);
            entry
        };
        for (bad, errno) in [
            (entry(never, second, 8), status::ENOENT),
            (entry(first, never, 8), status::ENOENT),
            (entry(first, second, 65), status::ERANGE),
            (entry(first, second, u32::MAX), status::ERANGE),
            (entry(second, first, 8), status::EACCES),
            (entry(second, second, 8), status::EINVAL),
            (entry(first, second, 0), status::EINVAL),
            (with(|entry| entry.reserved = 1), status::EINVAL),
            (with(|entry| entry.desc.opcode = opcode::FILL), status::EOPNOTSUPP),
            (with(|entry| entry.desc.opcode = 0xff), status::EOPNOTSUPP),
            (with(|entry| entry.desc.dst_node = 3), status::EHOSTUNREACH),
            (with(|entry| entry.flags = submission::flags::DRAIN), status::EOPNOTSUPP),
            (with(|entry| entry.desc.src_addr = u64::MAX), status::ENOENT),
        ] {
            let answer = execute(registry.table(), &bad);
            assert_eq!(answer, CompletionEntry::failed(9, errno), "{bad:?}");
        }
        assert_eq!(memory, [7; 128]);
    }
}
