//! Memory of the peers' users: read and written where it lies, and let go of by who gives up.

use std::time::{Duration, Instant};

use stepccl_engine::{EngineError, Part, PartMut};

use super::HostEngine;
use crate::giving_up;
use crate::liveness;
use crate::pull::Remote;

/// Pause between looks at who writes.
const PAUSE: Duration = Duration::from_micros(50);

impl HostEngine {
    fn remote(&self, rank: u32, address: u64, bytes: usize) -> Result<Remote, EngineError> {
        let peer = self.peers.iter().find(|peer| peer.rank == rank);
        match peer.and_then(|peer| peer.process) {
            Some(pid) => Ok(Remote { rank, pid, address }),
            None => Err(EngineError::PeerMemory {
                rank,
                address,
                bytes: bytes as u64,
                message: "its process is not visible from this PID namespace".to_owned(),
            }),
        }
    }

    /// Read memory of another rank's user.
    ///
    /// # Safety
    ///
    /// `dst` is valid for writes, and nothing else uses it meanwhile.
    pub(super) unsafe fn read_peer(
        &self,
        from: u32,
        address: u64,
        dst: PartMut,
    ) -> Result<(), EngineError> {
        let remote = self.remote(from, address, dst.bytes)?;
        // SAFETY:
        // - The caller vouches for `dst`.
        unsafe { remote.read(dst)? };
        if !giving_up::was_readable(&self.lanes[from as usize], from) {
            return Err(remote.failed(dst.bytes, "the rank has given up meanwhile".to_owned()));
        }
        self.meter.pulls.add(1);
        self.meter.pulled_bytes.add(dst.bytes as u64);
        Ok(())
    }

    /// Write memory of another rank's user.
    ///
    /// # Safety
    ///
    /// `src` is valid for reads, and nobody writes it meanwhile.
    pub(super) unsafe fn write_peer(
        &self,
        to: u32,
        address: u64,
        src: Part,
    ) -> Result<(), EngineError> {
        let remote = self.remote(to, address, src.bytes)?;
        // The number of a process that has ended may be another's soon.
        let may = || !liveness::has_ended(&self.peers, to);
        let write = || {
            // SAFETY:
            // - The caller vouches for `src`.
            unsafe { remote.write(src) }
        };
        giving_up::push(self.own(), &self.lanes[to as usize], to, may, write)
            .unwrap_or_else(|| Err(remote.failed(src.bytes, "the rank has given up".to_owned())))?;
        self.meter.pushes.add(1);
        self.meter.pushed_bytes.add(src.bytes as u64);
        Ok(())
    }

    /// Wait until no peer that lives writes memory of this process, which has said that it gives up.
    pub(super) fn wait_for_writers(&self, limit: Duration) -> bool {
        let start = Instant::now();
        let writes = |rank: u32| {
            giving_up::pushes(&self.lanes[rank as usize], self.config.rank)
                && !liveness::has_ended(&self.peers, rank)
        };
        while self.peers.iter().any(|peer| writes(peer.rank)) {
            if start.elapsed() >= limit {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::{HostConfig, PeerLink};
    use stepccl_engine::{Engine, RankState};
    use stepccl_memory::Segment;

    /// Rank 0 of two, the other rank's segment, and its end of the connection.
    fn rank_0() -> (HostEngine, Segment, UnixStream) {
        let configs = [0, 1].map(|rank| HostConfig { flags: 1, ..HostConfig::new(rank, 2) });
        let [own, theirs] = configs.map(|config| HostEngine::create_segment(&config).unwrap());
        let (near, far) = UnixStream::pair().unwrap();
        let fd = theirs.fd().try_clone_to_owned().unwrap();
        let segment = Segment::open(fd, theirs.bytes()).unwrap();
        let pid = std::process::id();
        let link = PeerLink { rank: 1, pid, segment, socket: Some(near.into()) };
        (HostEngine::new(configs[0], own, vec![link]).unwrap(), theirs, far)
    }

    #[test]
    fn who_gives_up_waits_for_a_peer_that_writes_and_lives() {
        let (mut engine, theirs, far) = rank_0();
        let pushing = |value| theirs.view().write_u64(crate::layout::PUSHING, value).unwrap();
        engine.announce(RankState::Failed { culprit: 0 });
        assert!(engine.settle(Duration::ZERO));
        // Into its own memory, which is no business of this rank.
        pushing(2);
        assert!(engine.settle(Duration::ZERO));
        pushing(1);
        assert!(!engine.settle(Duration::from_millis(5)));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                pushing(0);
            });
            assert!(engine.settle(Duration::from_secs(20)));
        });
        pushing(1);
        drop(far);
        assert!(engine.settle(Duration::ZERO), "its process is gone");
    }
}
