//! Entry point of the fuzz target of this crate; see `tests/fuzz`.
//!
//! The receiving side runs here without its thread, so that an input always does the same.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use nix::sys::epoll::{Epoll, EpollCreateFlags};
use nix::sys::eventfd::EventFd;
use stepccl_engine::{BoardShape, REASON_BYTES, Wake};

use crate::area::Area;
use crate::frame::{Frame, Limits, VERSION};
use crate::inbox::Inbox;
use crate::peer::Peer;
use crate::shared::Shared;
use crate::shelf::Shelf;
use crate::transfers::Way;

const STAGING_BYTES: usize = 64 << 10;
const LIMITS: Limits = Limits {
    flags: 16,
    staging_bytes: STAGING_BYTES as u64,
    post_bytes: Some(200),
    pair_post_bytes: Some(40),
};

#[derive(Debug)]
struct NoWaker;

impl Wake for NoWaker {
    fn wake(&self) {}
}

/// Both ends of a connection: of a Unix socket, since millions of TCP ports are not to be had.
fn pair() -> std::io::Result<(TcpStream, UnixStream)> {
    let (one, other) = UnixStream::pair()?;
    one.set_nonblocking(true)?;
    Ok((OwnedFd::from(one).into(), other))
}

/// What rank 1 of 2 sends to rank 0, which waits for two answers and two acknowledgements of its
/// own. Panics where the receiving side does not end, or touches what it must not.
pub fn peer(data: &[u8]) {
    let Ok((stream, mut other)) = pair() else { return };
    let (Ok(epoll), Ok(event)) = (Epoll::new(EpollCreateFlags::empty()), EventFd::new()) else {
        return;
    };
    let mut staging = vec![0; STAGING_BYTES];
    let mut memory = [0; 64];
    let shelf = |bytes| Shelf::new(Some(BoardShape { posts: 4, bytes }));
    let peers = vec![Peer::new((1, 4242), stream, 0, (shelf(200), shelf(40)))];
    // SAFETY:
    // - Both outlive `shared` and its peer, and are looked at only after them.
    let (area, wanted) = unsafe {
        (Area::new(staging.as_mut_ptr(), STAGING_BYTES as u64), Area::new(memory.as_mut_ptr(), 32))
    };
    let shared = Shared::new((0, 2), LIMITS, peers, area, epoll, event, Arc::new(NoWaker));
    let peer = &shared.peers[0];
    for way in [Way::Fetch, Way::Fetch, Way::Store, Way::Store] {
        let _ = peer.transfers().start(way, wanted, 7);
    }
    let mut inbox = Inbox::new(LIMITS);
    let mut buffer = vec![0; 4096];
    for piece in data.chunks(512) {
        // A peer that is given up takes nothing more.
        if other.write_all(piece).is_err() {
            break;
        }
        while inbox.receive(&shared, peer, &mut buffer) && !peer.is_gone() {}
        let _ = peer.collective.look(0).is_some() | peer.pair.look(3).is_some();
    }
    let _ = other.shutdown(Shutdown::Write);
    while !peer.is_gone() {
        inbox.receive(&shared, peer, &mut buffer);
    }
    assert!(peer.why().is_some_and(|why| !why.is_empty()));
    if let Some(reason) = peer.why_failed() {
        // What is no UTF-8 takes up to three bytes for one.
        assert!(reason.len() <= 3 * REASON_BYTES && !reason.chars().any(char::is_control));
    }
    drop(shared);
    assert!(memory[32..].iter().all(|byte| *byte == 0));
}

/// First inputs of [`peer`].
#[must_use]
pub fn peer_seeds() -> Vec<Vec<u8>> {
    let hello = Frame::Hello {
        version: VERSION,
        flags: LIMITS.flags,
        rank: 1,
        ranks: 2,
        staging_bytes: LIMITS.staging_bytes,
    };
    let frames = [
        Frame::Flag { flag: 3, value: 7 },
        Frame::Post { pair: false, number: 0, bytes: 24 },
        Frame::Post { pair: true, number: 3, bytes: 8 },
        Frame::Read { id: 0, offset: 64, bytes: 4096 },
        Frame::Data { id: 0, bytes: 32 },
        Frame::Write { id: 5, offset: 128, bytes: 100 },
        Frame::Ack { id: 0, bytes: 32 },
        Frame::Reason,
        Frame::State(stepccl_engine::RankState::Failed { culprit: 1 }),
        Frame::State(stepccl_engine::RankState::Closed),
        Frame::Will { offset: 0, bytes: 50 },
        Frame::Bye,
        Frame::ByeHeard,
    ];
    let bytes = |frame: &Frame| {
        let payload = vec![9; frame.payload_bytes() as usize];
        [&frame.encode()[..], &payload].concat()
    };
    let mut seeds: Vec<_> =
        frames.iter().map(|frame| [&hello.encode()[..], &bytes(frame)].concat()).collect();
    let all: Vec<u8> = frames.iter().flat_map(bytes).collect();
    seeds.push([&hello.encode()[..], &all].concat());
    seeds
}
