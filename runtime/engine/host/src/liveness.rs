//! Who of the peers will not signal any more.

use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::Pid;
use stepccl_engine::{LostPeer, RankState};

use crate::header::decode_state;
use crate::lane::Lane;
use crate::words::LaneWords;

/// What is known of one peer besides its segment.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) rank: u32,
    pub(crate) pid: u32,
    pub(crate) socket: Option<OwnedFd>,
    /// Its process as this process sees it, where it does.
    pub(crate) process: Option<Pid>,
    /// Readable when that process has ended. A process that was forked from the peer keeps its
    /// socket open, so that the socket alone would not tell.
    pub(crate) end: Option<OwnedFd>,
}

/// What becomes readable when `process` ends, where the system has such.
pub(crate) fn end_of(process: Pid) -> Option<OwnedFd> {
    // SAFETY:
    // - The call takes two numbers and touches no memory.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, process.as_raw(), 0) };
    let fd = RawFd::try_from(Errno::result(fd).ok()?).ok()?;
    // SAFETY:
    // - The kernel has just made this descriptor for this process, and nobody else knows it.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Append the peers that died, closed or failed, by rank.
pub(crate) fn lost_peers(peers: &[Peer], lanes: &[Lane], lost: &mut Vec<LostPeer>) {
    // Sockets first: what a process announced before it ended is in its segment afterwards.
    let ended = ended_sockets(peers);
    lost.extend(peers.iter().zip(ended).filter_map(|(peer, ended)| {
        let state = decode_state(lanes.get(peer.rank as usize)?.state(), peer.rank);
        let gone = ended || state != RankState::Running;
        gone.then_some(LostPeer { rank: peer.rank, pid: peer.pid, state })
    }));
}

/// Whether the socket or the process of `rank` says that it is gone.
pub(crate) fn has_ended(peers: &[Peer], rank: u32) -> bool {
    let place = peers.iter().position(|peer| peer.rank == rank);
    place.is_some_and(|at| ended_sockets(&peers[at..=at])[0])
}

/// For each peer, whether its socket or its process says that it is gone.
fn ended_sockets(peers: &[Peer]) -> Vec<bool> {
    let mut ended = vec![false; peers.len()];
    // Hang-ups are told without being asked for. A Unix socket hangs up when the process at its
    // other end is gone; data that waits to be read is no end.
    let sockets = peers.iter().map(|peer| (&peer.socket, PollFlags::empty()));
    let ends = peers.iter().map(|peer| (&peer.end, PollFlags::POLLIN));
    let (places, mut polled): (Vec<_>, Vec<_>) = (0..peers.len())
        .zip(sockets)
        .chain((0..peers.len()).zip(ends))
        .filter_map(|(place, (fd, events))| {
            Some((place, PollFd::new(fd.as_ref()?.as_fd(), events)))
        })
        .unzip();
    // A poll that fails knows nothing; the state words still speak.
    if !polled.is_empty() && poll(&mut polled, PollTimeout::ZERO).is_ok_and(|ready| ready > 0) {
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLIN;
        for (place, fd) in places.into_iter().zip(&polled) {
            ended[place] |= fd.revents().is_some_and(|events| events.intersects(gone));
        }
    }
    ended
}
