//! From a store to a communicator: meet, agree, share memory, measure.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stepccl_bootstrap::{JoinConfig, Mesh, Secret, Store, join};
use stepccl_engine::{Address, Engine, EngineError};
use stepccl_engine_host::{HostConfig, HostEngine, HostError, PeerLink};
use stepccl_memory::Segment;
use stepccl_plan::{Figures, Topology};

use crate::agreement::Agreement;
use crate::context::Context;
use crate::geometry::{BoardShares, Geometry};
use crate::measure;
use crate::placement;
use crate::plans::Plans;
use crate::progress::{Abort, Patience, Progress};
use crate::{Config, Error};

/// Looks before a thread sleeps, where every rank has a core: some 200 microseconds, which is more
/// than a peer needs for a page, so that pages do not wait for a wake-up.
const LOOKS: u32 = 8000;
/// The same where ranks share cores: the peer needs the core to get anywhere.
const LOOKS_SHARED: u32 = 20;
/// Signal latency where ranks share cores: a switch of threads.
const SHARED_LATENCY_NS: f64 = 10_000.0;

/// What a communicator is made of.
pub(crate) struct Connected {
    pub progress: Progress,
    pub abort: Arc<Abort>,
    pub patience: Patience,
    pub plans: Plans,
    pub staging_bytes: usize,
}

pub(crate) fn connect(
    store: &dyn Store,
    name: &str,
    rank: u32,
    ranks: u32,
    config: &Config,
) -> Result<Connected, Error> {
    config.check()?;
    let deadline = Instant::now() + config.start_timeout;
    let staging_bytes = config.staging_bytes(ranks.max(1));
    let agreement = Agreement::of(config, staging_bytes);
    let secret = config
        .secret
        .as_deref()
        .map(Secret::from_text)
        .transpose()
        .map_err(|error| Error::invalid("secret", "(not shown)", error.to_string()))?;
    let mut mesh = join(
        store,
        JoinConfig {
            name: name.to_owned(),
            rank,
            ranks,
            secret,
            timeout: config.start_timeout,
            note: [agreement.to_note(), placement::note(&placement::own_cores()).into()].concat(),
        },
    )?;
    agreement.check(name, rank, &mesh.notes)?;
    let topology = Topology::new(&mesh.nodes)?;
    if topology.nodes() > 1 {
        return Err(Error::NotSupported {
            what: format!("communicator '{name}' over {} hosts", topology.nodes()),
            why: "the host engine moves bytes within one host (and one network namespace); start all ranks there".to_owned(),
        });
    }

    let shares = BoardShares::of(ranks, staging_bytes);
    let geometry = Geometry::new(ranks, shares.staging_bytes, true);
    let mut engine = open_engine(&mut mesh, geometry, shares, config, deadline)?;
    let staging = (0..ranks)
        .map(|r| engine.staging(r).map(|s| s.base))
        .collect::<Option<Box<[Address]>>>()
        .ok_or_else(|| Error::System {
            what: format!("communicator '{name}', rank {rank}"),
            message: "the engine cannot address the staging of every rank".to_owned(),
        })?;

    let shared = placement::share_cores(&mesh.notes);
    let figures = agree_on_figures(
        &mut mesh,
        engine.as_mut(),
        staging[rank as usize],
        &geometry,
        shared,
        deadline,
    )?;
    let reduce_sources = engine.capabilities().max_reduce_sources;
    let abort = Arc::new(Abort::default());
    let context = Context::new(engine, rank, ranks, geometry, staging);
    Ok(Connected {
        progress: Progress::new(context, name.to_owned(), Arc::clone(&abort)),
        abort,
        patience: Patience { looks: if shared { LOOKS_SHARED } else { LOOKS } },
        plans: Plans::new(
            rank,
            topology,
            figures,
            geometry,
            reduce_sources,
            shares.collective.bytes,
            config,
        ),
        staging_bytes,
    })
}

fn open_engine(
    mesh: &mut Mesh,
    geometry: Geometry,
    shares: BoardShares,
    config: &Config,
    deadline: Instant,
) -> Result<Box<dyn Engine>, Error> {
    let host = HostConfig {
        // One more than plans and pairs use, for the measurement at start.
        flags: geometry.flags() + 1,
        board: shares.collective,
        pair_board: shares.pair,
        staging_bytes: shares.staging_bytes as u64,
        channels: config.channels,
        channel_min_bytes: config.channel_min_bytes as u64,
        ..HostConfig::new(mesh.rank, mesh.ranks)
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
        let segment = Segment::open(descriptor, own.bytes()).map_err(|error| Error::System {
            what: format!("shared memory of rank {rank}"),
            message: error.to_string(),
        })?;
        let socket = link.stream.try_clone().map_err(|error| Error::System {
            what: format!("socket of rank {rank}"),
            message: error.to_string(),
        })?;
        peers.push(PeerLink { rank, pid: link.pid, segment, socket: Some(OwnedFd::from(socket)) });
    }
    let engine = HostEngine::new(host, own, peers).map_err(failed)?;
    Ok(Box::new(engine))
}

/// Rank 0 measures; all use what it found.
fn agree_on_figures(
    mesh: &mut Mesh,
    engine: &mut dyn Engine,
    staging: Address,
    geometry: &Geometry,
    shared: bool,
    deadline: Instant,
) -> Result<Figures, Error> {
    let failed =
        |source: EngineError| Error::Engine { context: "measuring at start".to_owned(), source };
    let (rank, ranks) = (mesh.rank, mesh.ranks);
    let mut figures = Figures::default();
    if rank == 0 {
        let (copy, sum) = measure::rates(engine, staging, geometry.pair_offset).map_err(failed)?;
        figures.copy_bytes_per_second = copy;
        figures.local.bytes_per_second = copy;
        figures.reduce_bytes_per_second = sum;
    }
    if ranks == 1 {
        return Ok(figures);
    }
    // Everybody is connected and nobody measures beside the others.
    mesh.exchange(&[], deadline)?;
    if rank < 2 && !shared {
        let latency = measure::signal_latency(engine, rank, geometry.flags()).map_err(failed)?;
        if let Some(latency) = latency.filter(|l| *l > Duration::ZERO) {
            figures.local.latency_ns = latency.as_secs_f64() * 1e9;
        }
    } else if shared {
        figures.local.latency_ns = SHARED_LATENCY_NS;
    }
    let all = mesh.exchange(&measure::encode(&figures), deadline)?;
    let first = all.first().and_then(Option::as_deref).unwrap_or(&[]);
    if rank == 0 {
        return Ok(figures);
    }
    measure::decode(first, Figures::default()).ok_or_else(|| Error::System {
        what: "figures of rank 0".to_owned(),
        message: format!("{} bytes that are no figures", first.len()),
    })
}
