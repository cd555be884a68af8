//! Connected engines of several ranks in one process.

use std::collections::HashMap;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use stepccl_engine_host::{HostConfig, HostEngine, PeerLink};
use stepccl_engine_tcp::{TcpConfig, TcpEngine, TcpLink};
use stepccl_memory::Segment;

/// The engines of ranks on these nodes: TCP over loopback between nodes, shared memory within one.
pub fn engines(nodes: &[u32], channels: u32) -> Vec<TcpEngine> {
    let ranks = nodes.len() as u32;
    let mut streams = streams(nodes);
    let mut engines: HashMap<u32, TcpEngine> = HashMap::new();
    for node in 0..ranks {
        let local: Vec<u32> = (0..ranks).filter(|rank| nodes[*rank as usize] == node).collect();
        for (host, rank) in hosts(local.len() as u32, channels).into_iter().zip(&local) {
            let config = TcpConfig {
                rank: *rank,
                ranks,
                local: local.clone(),
                link_timeout: Duration::from_secs(20),
            };
            let links = (0..ranks)
                .filter_map(|peer| {
                    let stream = streams.remove(&(*rank, peer))?;
                    Some(TcpLink { rank: peer, pid: std::process::id(), stream })
                })
                .collect();
            engines.insert(*rank, TcpEngine::new(&config, host, links).unwrap());
        }
    }
    (0..ranks).map(|rank| engines.remove(&rank).unwrap()).collect()
}

/// Two ends of a connection over loopback.
pub fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (one, listener.accept().unwrap().0)
}

/// Host engines of the ranks of one node, without sockets: they are threads.
pub fn hosts(ranks: u32, channels: u32) -> Vec<HostEngine> {
    let configs: Vec<_> = (0..ranks)
        .map(|rank| HostConfig {
            flags: 16,
            staging_bytes: 256 << 10,
            channels,
            ..HostConfig::new(rank, ranks)
        })
        .collect();
    let segments: Vec<_> = configs.iter().map(|c| HostEngine::create_segment(c).unwrap()).collect();
    let pass = |rank: u32| {
        let fd = segments[rank as usize].fd().try_clone_to_owned().unwrap();
        Segment::open(fd, configs[0].segment_bytes().unwrap()).unwrap()
    };
    configs
        .iter()
        .map(|config| {
            let peers = (0..ranks)
                .filter(|rank| *rank != config.rank)
                .map(|rank| PeerLink {
                    rank,
                    pid: std::process::id(),
                    segment: pass(rank),
                    socket: None,
                })
                .collect();
            HostEngine::new(*config, pass(config.rank), peers).unwrap()
        })
        .collect()
}

/// By (a, b): end of rank a of its connection with rank b, where they are on different nodes.
fn streams(nodes: &[u32]) -> HashMap<(u32, u32), TcpStream> {
    let mut ends = HashMap::new();
    for a in 0..nodes.len() {
        for b in (0..a).filter(|b| nodes[*b] != nodes[a]) {
            let (one, other) = pair();
            ends.insert((a as u32, b as u32), one);
            ends.insert((b as u32, a as u32), other);
        }
    }
    ends
}
