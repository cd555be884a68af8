//! Connected engines of several ranks in one process.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use stepccl_engine_host::{HostConfig, HostEngine, PeerLink};
use stepccl_memory::Segment;

/// The engines of `ranks` ranks with `channels` channels each, and sockets between them. Each
/// maps the segments of the others anew, as processes do.
pub fn engines(ranks: u32, channels: u32) -> Vec<HostEngine> {
    let configs: Vec<_> = (0..ranks)
        .map(|rank| HostConfig {
            flags: 16,
            staging_bytes: 256 << 10,
            channels,
            ..HostConfig::new(rank, ranks)
        })
        .collect();
    let segments: Vec<_> = configs.iter().map(|c| HostEngine::create_segment(c).unwrap()).collect();
    let mut sockets = sockets(ranks);
    configs
        .iter()
        .map(|config| {
            let peers = (0..ranks)
                .filter(|rank| *rank != config.rank)
                .map(|rank| PeerLink {
                    rank,
                    pid: std::process::id(),
                    segment: passed(&segments[rank as usize], config),
                    socket: sockets.remove(&(config.rank, rank)),
                })
                .collect();
            let own = passed(&segments[config.rank as usize], config);
            HostEngine::new(*config, own, peers).unwrap()
        })
        .collect()
}

fn passed(segment: &Segment, config: &HostConfig) -> Segment {
    let fd = segment.fd().try_clone_to_owned().unwrap();
    Segment::open(fd, config.segment_bytes().unwrap()).unwrap()
}

/// By (a, b): end of rank a of its connection with rank b.
fn sockets(ranks: u32) -> HashMap<(u32, u32), OwnedFd> {
    let mut ends = HashMap::new();
    for a in 0..ranks {
        for b in 0..a {
            let (one, other) = UnixStream::pair().unwrap();
            ends.insert((a, b), one.into());
            ends.insert((b, a), other.into());
        }
    }
    ends
}
