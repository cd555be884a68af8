//! From a store to a communicator: meet, agree, share memory, measure.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stepccl_bootstrap::{JoinConfig, Mesh, Network, Secret, Store, join};
use stepccl_engine::{Address, Engine, EngineError};
use stepccl_plan::{Figures, Topology};

use crate::agreement::Agreement;
use crate::context::Context;
use crate::engines;
use crate::flight::{Flight, Owner};
use crate::geometry::{BoardShares, Geometry};
use crate::measure;
use crate::meet::Meeting;
use crate::placement;
use crate::plans::Plans;
use crate::progress::{Abort, Patience, Progress};
use crate::single_copy::{self, SingleCopy};
use crate::{Config, EngineChoice, Error, flight};

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
    pub single_copy: SingleCopy,
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
            note: [
                agreement.to_note(),
                placement::note(&placement::own_cores()).into(),
                flight::note().into(),
            ]
            .concat(),
            network: Network {
                everywhere: config.engine == EngineChoice::Tcp,
                interfaces: config.socket_ifname.clone(),
            },
        },
    )?;
    agreement.check(name, rank, &mesh.notes)?;
    let local = engines::local_ranks(&mesh);
    let networked = local.len() < ranks as usize;
    if config.engine == EngineChoice::Host && networked {
        return Err(Error::NotSupported {
            what: format!("communicator '{name}' over several nodes with STEPCCL_ENGINE=host"),
            why: "the host engine moves bytes within one node, which is one host and one network \
                  namespace; start all ranks there, or set STEPCCL_ENGINE=auto"
                .to_owned(),
        });
    }
    // Where all links are of the network, each rank is a node to the planners.
    let topology = match config.engine {
        EngineChoice::Tcp => Topology::uniform(ranks, ranks)?,
        EngineChoice::Auto | EngineChoice::Host => Topology::new(&mesh.nodes)?,
    };

    let shares = BoardShares::of(ranks, staging_bytes);
    let geometry = Geometry::new(ranks, shares.staging_bytes, true);
    let mut engine = engines::open(&mut mesh, geometry, shares, config, deadline)?;
    let staging = (0..ranks)
        .map(|r| engine.staging(r).map(|s| s.base))
        .collect::<Option<Box<[Address]>>>()
        .ok_or_else(|| Error::System {
            what: format!("communicator '{name}', rank {rank}"),
            message: "the engine cannot address the staging of every rank".to_owned(),
        })?;

    let notes: Vec<&[u8]> =
        local.iter().map(|rank| mesh.notes[*rank as usize].as_slice()).collect();
    // A rank with links over the network has a thread that serves them.
    let shared = placement::share_cores(&notes, if networked { 2 } else { 1 });
    let figures = if networked {
        let meeting = Meeting {
            engine: engine.as_mut(),
            name,
            rank,
            ranks,
            flag: geometry.flags(),
            deadline,
        };
        agree_over_engine(meeting, &local, &staging, &geometry, shared)?
    } else {
        agree_on_figures(
            &mut mesh,
            engine.as_mut(),
            staging[rank as usize],
            &geometry,
            shared,
            deadline,
        )?
    };
    let single_copy = if networked {
        SingleCopy::Off("ranks are on several nodes".to_owned())
    } else {
        single_copy::probe(
            &mut mesh,
            engine.as_mut(),
            config.wants_single_copy(),
            figures.copy_bytes_per_second,
            deadline,
        )?
    };
    let reduce_sources = engine.capabilities().max_reduce_sources;
    let abort = Arc::new(Abort::default());
    let owner = Owner {
        communicator: name,
        job: flight::job(&mesh.notes),
        rank,
        ranks,
        engine: engine.name(),
    };
    let flight = Flight::new(owner, config.flight_records, engine.meter());
    let mut context = Context::new(engine, rank, ranks, geometry, staging);
    context.pull_from = single_copy.least_bytes();
    context.push_from = single_copy.both_from();
    let mut progress = Progress::new(context, name.to_owned(), Arc::clone(&abort));
    progress.flight = Arc::new(flight);
    Ok(Connected {
        progress,
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
        single_copy,
        staging_bytes,
    })
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

/// The same where ranks are of several nodes: rank 0 measures its node and the way to another.
fn agree_over_engine(
    mut meeting: Meeting<'_>,
    local: &[u32],
    staging: &[Address],
    geometry: &Geometry,
    shared: bool,
) -> Result<Figures, Error> {
    let failed =
        |source: EngineError| Error::Engine { context: "measuring at start".to_owned(), source };
    let rank = meeting.rank;
    meeting.meet(1)?;
    let mut figures = Figures::default();
    // Rank 0 and the next rank of its node send signals to and fro.
    let pair = (local.first() == Some(&0)).then(|| local.get(1)).flatten().copied();
    if let Some(second) = pair.filter(|second| rank == 0 || rank == *second) {
        let peer = if rank == 0 { second } else { 0 };
        let engine = &mut *meeting.engine;
        let begins = rank == 0;
        let latency = if shared {
            None
        } else {
            measure::signal_latency_with(engine, begins, peer, geometry.flags()).map_err(failed)?
        };
        figures.local.latency_ns = match latency {
            Some(latency) if latency > Duration::ZERO => latency.as_secs_f64() * 1e9,
            _ => SHARED_LATENCY_NS,
        };
    }
    if rank == 0 {
        let engine = &mut *meeting.engine;
        let (copy, sum) =
            measure::rates(engine, staging[0], geometry.pair_offset).map_err(failed)?;
        figures.copy_bytes_per_second = copy;
        figures.local.bytes_per_second = copy;
        figures.reduce_bytes_per_second = sum;
        let far = (0..meeting.ranks).find(|peer| !local.contains(peer));
        if let Some(far) = far {
            let (latency, rate) =
                measure::network(engine, staging[far as usize], geometry.pair_offset)
                    .map_err(failed)?;
            figures.network.latency_ns = latency;
            figures.network.bytes_per_second = rate;
        }
    }
    let mut message = [0; measure::MESSAGE_BYTES];
    message.copy_from_slice(&measure::encode(&figures));
    meeting.hear(&mut message, staging, measure::AFTER_SIGNALS)?;
    measure::decode(&message, Figures::default()).ok_or_else(|| Error::System {
        what: "figures of rank 0".to_owned(),
        message: format!("{message:?} are no figures"),
    })
}
