//! All ranks of several nodes wait for one another, and hear of rank 0, over the engine.
//!
//! Links between nodes belong to the engine once it is open, so what is left to be said at start
//! goes through it. Values of one flag that only start-up uses count the meetings.

use std::time::{Duration, Instant};

use stepccl_bootstrap::BootstrapError;
use stepccl_engine::{Address, Engine, EngineError, Operation, Submission, UserMemory};
use stepccl_plan::Targets;

use crate::Error;

/// Longest sleep before the deadline and the peers are looked at again.
const NAP: Duration = Duration::from_millis(20);

/// Ranks at start, over their engine.
pub(crate) struct Meeting<'a> {
    pub engine: &'a mut dyn Engine,
    pub name: &'a str,
    pub rank: u32,
    pub ranks: u32,
    /// Flag that only start-up uses.
    pub flag: u32,
    pub deadline: Instant,
}

impl Meeting<'_> {
    /// Wait until every rank has come to meeting `value`; numbers grow.
    pub fn meet(&mut self, value: u64) -> Result<(), Error> {
        let start = Instant::now();
        self.engine.signal(Targets::All, self.flag, value).map_err(failed)?;
        for peer in 0..self.ranks {
            while self.engine.flag(peer, self.flag).map_err(failed)? < value {
                self.check(peer, start)?;
                let flag = self.flag;
                let mut come =
                    |engine: &dyn Engine| engine.flag(peer, flag).is_ok_and(|v| v >= value);
                self.engine.park(&mut come, NAP).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// What rank 0 says, which has `message` for it; meetings `value` and `value + 1`.
    pub fn hear(
        &mut self,
        message: &mut [u8],
        staging: &[Address],
        value: u64,
    ) -> Result<(), Error> {
        let bytes = message.len() as u64;
        let memory =
            UserMemory { base: message.as_mut_ptr(), bytes, writable: true, streaming: false };
        // SAFETY:
        // - The message lives and is not touched until `unregister` below has returned.
        let region = unsafe { self.engine.register(memory) }.map_err(failed)?;
        let own = Address::start_of(region);
        let at_zero = staging.first().copied().unwrap_or(Address::from_raw(0));
        let said = if self.rank == 0 { self.copy(own, at_zero, bytes) } else { Ok(()) };
        let heard = said
            .and_then(|()| self.meet(value))
            .and_then(|()| if self.rank == 0 { Ok(()) } else { self.copy(at_zero, own, bytes) });
        self.engine.unregister(region).map_err(failed)?;
        // Rank 0 uses its staging for other things behind this.
        heard.and_then(|()| self.meet(value + 1))
    }

    fn copy(&mut self, src: Address, dst: Address, bytes: u64) -> Result<(), Error> {
        let mut completions = Vec::new();
        let copy = Operation::Copy { src, dst, bytes };
        if let Submission::InProgress(_) = self.engine.submit(&copy).map_err(failed)? {
            // A lost link ends the copy with an error, and so does the engine's own timeout.
            while completions.is_empty() {
                self.engine.reap(&mut completions).map_err(failed)?;
                self.engine.park(&mut |_| false, NAP).map_err(failed)?;
            }
        }
        completions.pop().map_or(Ok(0), |completion| completion.result).map_err(failed).map(drop)
    }

    fn check(&mut self, awaited: u32, start: Instant) -> Result<(), Error> {
        let mut lost = Vec::new();
        self.engine.lost_peers(&mut lost);
        let during = "meeting over the engine";
        if let Some(lost) = lost.first() {
            return Err(Error::Bootstrap(BootstrapError::PeerLost {
                name: self.name.to_owned(),
                rank: self.rank,
                peer: lost.rank,
                pid: lost.pid,
                during: match self.engine.why_lost(lost.rank) {
                    Some(why) => format!("{during} ({why})"),
                    None => during.to_owned(),
                },
            }));
        }
        if Instant::now() >= self.deadline {
            return Err(Error::Bootstrap(BootstrapError::Timeout {
                name: self.name.to_owned(),
                rank: self.rank,
                during: during.to_owned(),
                waited: start.elapsed(),
                missing: vec![awaited],
            }));
        }
        Ok(())
    }
}

fn failed(source: EngineError) -> Error {
    Error::Engine { context: "meeting the other ranks at start".to_owned(), source }
}
