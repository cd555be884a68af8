//! Connected engines of several ranks in one process.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use stepccl_engine::Engine;
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
                    socket: sockets[config.rank as usize][rank as usize].take(),
                })
                .collect();
            let own = passed(&segments[config.rank as usize], config);
            HostEngine::new(*config, own, peers).unwrap()
        })
        .collect()
}

/// The same, as the conformance tests want them.
pub fn boxed(ranks: u32, channels: u32) -> Vec<Box<dyn Engine>> {
    engines(ranks, channels).into_iter().map(|engine| Box::new(engine) as Box<dyn Engine>).collect()
}

fn passed(segment: &Segment, config: &HostConfig) -> Segment {
    let fd = segment.fd().try_clone_to_owned().unwrap();
    Segment::open(fd, config.segment_bytes().unwrap()).unwrap()
}

/// `[a][b]`: end of rank a of its connection with rank b.
fn sockets(ranks: u32) -> Vec<Vec<Option<OwnedFd>>> {
    let mut ends: Vec<Vec<Option<OwnedFd>>> =
        (0..ranks).map(|_| (0..ranks).map(|_| None).collect()).collect();
    for a in 0..ranks as usize {
        for b in 0..a {
            let (one, other) = UnixStream::pair().unwrap();
            ends[a][b] = Some(one.into());
            ends[b][a] = Some(other.into());
        }
    }
    ends
}
