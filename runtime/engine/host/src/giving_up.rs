//! A rank that gives up, and the peers that use memory of its user: over any memory.
//!
//! Who writes says so before it looks whether the other rank still runs; who gives up says so before
//! it looks who writes. One of the two sees the other: `Documentation/memory-model.md`, "Writes into
//! a peer's memory".

use stepccl_engine::RankState;

use crate::header;
use crate::words::LaneWords;

/// The rank says what becomes of it, before it looks who uses its memory and before it lets it go.
pub fn announce(own: &impl LaneWords, state: RankState) {
    own.set_state(header::encode_state(state));
    own.fence();
}

/// Whether `rank` has said nothing else than that it runs.
pub fn runs(peer: &impl LaneWords, rank: u32) -> bool {
    header::decode_state(peer.state(), rank) == RankState::Running
}

/// Whether memory of `rank` could still be used, behind the end of a read of it. Where not, what was
/// read is to be thrown away.
pub fn was_readable(peer: &impl LaneWords, rank: u32) -> bool {
    // Pairs with the fence of `announce`: who read what was put there later sees the state.
    peer.fence();
    runs(peer, rank)
}

/// Write memory of `rank` by `write`, if it runs and `may` says so too.
pub fn push<L: LaneWords, T>(
    own: &L,
    peer: &L,
    rank: u32,
    may: impl FnOnce() -> bool,
    write: impl FnOnce() -> T,
) -> Option<T> {
    own.begin_push(u64::from(rank) + 1);
    // Pairs with the fence of `announce`, behind which that rank looks who writes.
    own.fence();
    let written = (runs(peer, rank) && may()).then(write);
    own.end_push();
    written
}

/// Whether a peer writes memory of `rank`, which has announced that it gives up.
pub fn pushes(peer: &impl LaneWords, rank: u32) -> bool {
    peer.pushing() == u64::from(rank) + 1
}
