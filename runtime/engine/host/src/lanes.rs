//! The lanes of all ranks, from the links that start-up made.

use std::sync::Arc;

use nix::unistd::Pid;
use stepccl_memory::Segment;

use crate::config::{HostConfig, PeerLink};
use crate::lane::Lane;
use crate::layout::Layout;
use crate::liveness::{self, Peer};
use crate::{HostError, header, pull};

/// Lanes of all ranks by rank, and what else is known of the peers, by rank.
pub(crate) fn connect(
    config: &HostConfig,
    layout: Layout,
    own: Segment,
    links: Vec<PeerLink>,
) -> Result<(Vec<Lane>, Vec<Peer>), HostError> {
    let HostConfig { rank: own_rank, ranks, .. } = *config;
    let mut segments: Vec<_> = (0..ranks).map(|_| None).collect();
    let mut counts = vec![0usize; ranks as usize];
    let mut peers = Vec::with_capacity(links.len());
    segments[own_rank as usize] = Some(own);
    counts[own_rank as usize] = 1;
    for PeerLink { rank, pid, segment, socket } in links {
        let Some(count) = counts.get_mut(rank as usize) else {
            return Err(HostError::BadRank { rank, ranks, limit: crate::MAX_RANKS });
        };
        *count += 1;
        segments[rank as usize] = Some(segment);
        // Without a socket it is a thread of this process.
        let process = socket.as_ref().map_or_else(|| Some(Pid::this()), pull::process_of);
        let end = process.filter(|_| socket.is_some()).and_then(liveness::end_of);
        peers.push(Peer { rank, pid, socket, process, end });
    }
    if let Some((rank, count)) = (0..).zip(counts).find(|(_, count)| *count != 1) {
        let links = if rank == own_rank { count - 1 } else { count };
        return Err(HostError::BadLinks { rank, links, ranks });
    }
    peers.sort_by_key(|peer| peer.rank);

    let mut lanes = Vec::with_capacity(ranks as usize);
    for (segment, rank) in segments.into_iter().flatten().zip(0..) {
        header::check(segment.view(), rank, ranks, layout)?;
        let memory = |source| HostError::Memory { rank, source };
        // Flags and posts are read in the first wait, which should not be the one that faults.
        segment.populate(0, layout.staging()).map_err(memory)?;
        let bytes = segment.bytes();
        let lane = Lane::new(Arc::new(segment), layout).ok_or(HostError::Header {
            rank,
            field: "the segment's length",
            expected: layout.segment_bytes() as u64,
            found: bytes as u64,
        })?;
        lanes.push(lane);
    }
    Ok((lanes, peers))
}
