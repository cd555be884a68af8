//! The engine of a communicator: shared memory within the node, TCP to others.

use std::os::fd::OwnedFd;
use std::time::Instant;

use stepccl_bootstrap::{Link, Mesh, Stream};
use stepccl_engine::Engine;
use stepccl_engine_host::{HostConfig, HostEngine, HostError, PeerLink};
use stepccl_engine_tcp::{TcpConfig, TcpEngine, TcpError, TcpLink};
use stepccl_memory::Segment;

use crate::geometry::{BoardShares, Geometry};
use crate::{Config, Error};

/// Ranks that this one shares memory with, itself included, in order.
pub(crate) fn local_ranks(mesh: &Mesh) -> Vec<u32> {
    let far = |rank: &u32| {
        let link = mesh.links.get(*rank as usize).and_then(Option::as_ref);
        link.is_some_and(|link| link.stream.is_tcp())
    };
    (0..mesh.ranks).filter(|rank| !far(rank)).collect()
}

/// Open the engine that reaches every rank of the mesh. What is left of the mesh's links to other
/// nodes belongs to the engine then.
pub(crate) fn open(
    mesh: &mut Mesh,
    geometry: Geometry,
    shares: BoardShares,
    config: &Config,
    deadline: Instant,
) -> Result<Box<dyn Engine>, Error> {
    let local = local_ranks(mesh);
    let host = open_host(mesh, &local, geometry, shares, config, deadline)?;
    if local.len() == mesh.ranks as usize {
        return Ok(Box::new(host));
    }
    let shape =
        TcpConfig { rank: mesh.rank, ranks: mesh.ranks, local, link_timeout: config.link_timeout };
    let mut links = Vec::new();
    for Link { rank, pid, stream } in mesh.links.iter().flatten() {
        if let Stream::Tcp(stream) = stream {
            let stream = stream.try_clone().map_err(|error| of_rank("link", *rank, error))?;
            links.push(TcpLink { rank: *rank, pid: *pid, stream });
        }
    }
    let failed = |error: TcpError| Error::System {
        what: "opening the tcp engine".to_owned(),
        message: error.to_string(),
    };
    let engine = TcpEngine::new(&shape, host, links).map_err(failed)?;
    Ok(Box::new(engine))
}

fn open_host(
    mesh: &mut Mesh,
    local: &[u32],
    geometry: Geometry,
    shares: BoardShares,
    config: &Config,
    deadline: Instant,
) -> Result<HostEngine, Error> {
    let index = |rank: u32| local.iter().position(|local| *local == rank).map(|at| at as u32);
    let host = HostConfig {
        // One more than plans and pairs use, for the measurement at start.
        flags: geometry.flags() + 1,
        board: shares.collective,
        pair_board: shares.pair,
        staging_bytes: shares.staging_bytes as u64,
        channels: config.channels,
        channel_min_bytes: config.channel_min_bytes as u64,
        ..HostConfig::new(index(mesh.rank).unwrap_or(0), local.len() as u32)
    };
    let failed = |error: HostError| Error::System {
        what: "opening the host engine".to_owned(),
        message: error.to_string(),
    };
    let own = HostEngine::create_segment(&host).map_err(failed)?;
    let descriptors = mesh.exchange_fd(own.fd(), deadline)?;
    let mut peers = Vec::new();
    for (rank, descriptor) in (0..).zip(descriptors) {
        let (Some(descriptor), Some(link)) = (descriptor, &mesh.links[rank as usize]) else {
            continue;
        };
        let (Stream::Unix(socket), Some(rank)) = (&link.stream, index(rank)) else { continue };
        let segment = Segment::open(descriptor, own.bytes())
            .map_err(|error| of_rank("shared memory", link.rank, error))?;
        let socket = socket.try_clone().map_err(|error| of_rank("socket", link.rank, error))?;
        peers.push(PeerLink { rank, pid: link.pid, segment, socket: Some(OwnedFd::from(socket)) });
    }
    HostEngine::new(host, own, peers).map_err(failed)
}

fn of_rank(what: &str, rank: u32, error: impl std::fmt::Display) -> Error {
    Error::System { what: format!("{what} of rank {rank}"), message: error.to_string() }
}
