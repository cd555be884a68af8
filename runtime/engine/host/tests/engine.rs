//! What is particular to the host engine: segments of peers, deaths, full rings and the end.
#![cfg(not(loom))]

mod world;

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use stepccl_engine::{
    Address, Engine, EngineError, LostPeer, Operation, RankState, RegionId, Submission, UserMemory,
};
use stepccl_engine_host::{HostConfig, HostEngine, HostError, MAX_CHANNELS, PeerLink};
use stepccl_memory::Segment;

const CONFIG: HostConfig = HostConfig { staging_bytes: 4096, flags: 4, ..HostConfig::new(0, 2) };

fn link(config: &HostConfig, socket: Option<UnixStream>) -> PeerLink {
    let segment = HostEngine::create_segment(config).unwrap();
    PeerLink { rank: config.rank, pid: 4321, segment, socket: socket.map(Into::into) }
}

fn connect(peer: &HostConfig) -> Result<HostEngine, HostError> {
    HostEngine::new(CONFIG, HostEngine::create_segment(&CONFIG).unwrap(), vec![link(peer, None)])
}

/// Address of the memory; the caller keeps it longer than the engine.
fn register(engine: &mut HostEngine, memory: &mut [u8]) -> (RegionId, Address) {
    let memory = UserMemory {
        base: memory.as_mut_ptr(),
        bytes: memory.len() as u64,
        writable: true,
        streaming: false,
    };
    // SAFETY:
    // - Each test keeps its memory until the engine is gone, and looks at it after.
    let region = unsafe { engine.register(memory) }.unwrap();
    (region, Address::start_of(region))
}

#[test]
fn a_peer_of_other_settings_is_named_with_the_field() {
    let peer = HostConfig { rank: 1, ..CONFIG };
    assert!(connect(&peer).is_ok());
    for (peer, wrong) in [
        (HostConfig { ranks: 3, ..peer }, "the number of ranks"),
        (HostConfig { flags: 5, ..peer }, "the number of flags"),
        (HostConfig { staging_bytes: 8192, ..peer }, "the segment's length"),
    ] {
        match connect(&peer) {
            Err(HostError::Header { rank: 1, field, found, expected }) => {
                assert_eq!(field, wrong);
                assert_ne!(found, expected);
            }
            other => panic!("{wrong}: {other:?}"),
        }
    }
    // A segment that nobody has filled in, as a peer that does not speak this protocol has.
    let segment = Segment::create("blank", CONFIG.segment_bytes().unwrap()).unwrap();
    let peers = vec![PeerLink { rank: 1, pid: 1, segment, socket: None }];
    let own = HostEngine::create_segment(&CONFIG).unwrap();
    let error = HostEngine::new(CONFIG, own, peers).unwrap_err();
    assert!(error.to_string().starts_with("segment of rank 1: the magic number is 0"), "{error}");
}

#[test]
fn every_peer_is_linked_once() {
    let peer = |rank| link(&HostConfig { rank, ranks: 3, ..CONFIG }, None);
    let config = HostConfig { ranks: 3, ..CONFIG };
    for (peers, rank, links) in [
        (vec![], 1, 0),
        (vec![peer(2)], 1, 0),
        (vec![peer(1)], 2, 0),
        (vec![peer(1), peer(2), peer(1)], 1, 2),
        (vec![peer(1), peer(2), peer(0)], 0, 1),
    ] {
        let own = HostEngine::create_segment(&config).unwrap();
        let refused = HostEngine::new(config, own, peers).unwrap_err();
        assert_eq!(refused, HostError::BadLinks { rank, links, ranks: 3 });
    }
    let stranger = link(&HostConfig { rank: 3, ranks: 4, ..CONFIG }, None);
    let own = HostEngine::create_segment(&config).unwrap();
    let refused = HostEngine::new(config, own, vec![peer(1), peer(2), stranger]).unwrap_err();
    assert!(matches!(refused, HostError::BadRank { rank: 3, ranks: 3, .. }), "{refused}");
}

#[test]
fn settings_out_of_range_are_refused() {
    for config in [
        HostConfig::new(0, 0),
        HostConfig::new(2, 2),
        HostConfig::new(0, 4097),
        HostConfig { flags: 65_537, ..CONFIG },
        HostConfig { staging_bytes: (1 << 32) + 1, ..CONFIG },
        HostConfig { staging_bytes: u64::MAX, ..CONFIG },
        HostConfig { channels: MAX_CHANNELS + 1, ..CONFIG },
    ] {
        let refused = config.segment_bytes().unwrap_err();
        assert_eq!(HostEngine::create_segment(&config).unwrap_err(), refused);
    }
}

#[test]
fn a_process_that_died_is_told_from_one_that_closed() {
    let peer = HostConfig { rank: 1, ..CONFIG };
    let (own_end, peers_end) = UnixStream::pair().unwrap();
    let own = HostEngine::create_segment(&CONFIG).unwrap();
    let mut engine = HostEngine::new(CONFIG, own, vec![link(&peer, Some(own_end))]).unwrap();
    let mut lost = Vec::new();
    engine.lost_peers(&mut lost);
    assert_eq!(lost, []);

    // Bytes that nobody has read are no end.
    std::io::Write::write_all(&mut &peers_end, b"still here").unwrap();
    engine.lost_peers(&mut lost);
    assert_eq!(lost, []);

    drop(peers_end);
    engine.lost_peers(&mut lost);
    assert_eq!(lost, [LostPeer { rank: 1, pid: 4321, state: RankState::Running }]);
}

#[test]
fn a_panicking_rank_is_not_one_that_closed() {
    let mut engines = world::engines(2, 0);
    let mut left = engines.remove(0);
    let failing = engines.remove(0);
    std::thread::spawn(move || {
        let _failing = failing;
        std::panic::resume_unwind(Box::new(()));
    })
    .join()
    .unwrap_err();
    let mut lost = Vec::new();
    left.lost_peers(&mut lost);
    assert_eq!(lost.len(), 1);
    assert_eq!((lost[0].rank, lost[0].state), (1, RankState::Failed { culprit: 1 }));
}

#[test]
fn a_parked_rank_hears_of_an_end() {
    let mut engines = world::engines(2, 0);
    let mut parked = engines.remove(0);
    let closing = engines.remove(0);
    let start = Instant::now();
    let thread = std::thread::spawn(move || {
        parked.park(&mut |_| false, Duration::from_secs(30)).unwrap();
        parked
    });
    std::thread::sleep(Duration::from_millis(20));
    drop(closing);
    let mut parked = thread.join().unwrap();
    assert!(start.elapsed() < Duration::from_secs(10));
    let mut lost = Vec::new();
    parked.lost_peers(&mut lost);
    assert_eq!(lost.first().map(|peer| peer.state), Some(RankState::Closed));
}

#[test]
fn short_copies_are_done_and_long_ones_given_to_channels() {
    let mut memory = vec![7; 1 << 20];
    let mut engine = world::engines(1, 2).remove(0);
    let (_, base) = register(&mut engine, &mut memory);
    let dst = base.checked_add(1 << 19).unwrap();
    let copy = |bytes| Operation::Copy { src: base, dst, bytes };
    assert_eq!(engine.submit(&copy(65_535)), Ok(Submission::Done));
    let given = engine.submit(&copy(65_536)).unwrap();
    let Submission::InProgress(token) = given else { panic!("{given:?}") };
    let mut ended = Vec::new();
    while ended.is_empty() {
        engine.park(&mut |_| false, Duration::from_secs(10)).unwrap();
        engine.reap(&mut ended).unwrap();
    }
    assert_eq!((ended[0].token, &ended[0].result), (token, &Ok(65_536)));
    let counters = engine.counters();
    assert_eq!((counters.inline_operations, counters.channel_operations), (1, 1));
    assert_eq!(counters.copied_bytes, 65_535 + 65_536);
}

#[test]
fn full_channels_say_so_and_the_end_does_not_wait_for_them() {
    const BYTES: u64 = 4 << 20;
    let mut memory = vec![1; 2 * BYTES as usize];
    let mut engine = world::engines(1, 1).remove(0);
    let (region, src) = register(&mut engine, &mut memory);
    let copy = Operation::Copy { src, dst: src.checked_add(BYTES).unwrap(), bytes: BYTES };
    let mut given = 0;
    while engine.submit(&copy).unwrap() != Submission::Full {
        given += 1;
        assert!(given <= 64, "a ring has 64 entries");
    }
    assert_eq!((given, engine.counters().full), (64, 1));
    let busy = EngineError::RegionBusy { region: region.get() };
    assert_eq!(engine.unregister(region), Err(busy));
    // At most the copy under way is finished, out of 256 MiB.
    let start = Instant::now();
    drop(engine);
    assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
    assert_eq!(memory[0], 1);
}

#[test]
fn many_ranks_fit_one_process() {
    const RANKS: u32 = 40;
    let engines = world::engines(RANKS, 0);
    for (engine, rank) in engines.iter().zip(0..) {
        assert_eq!(engine.staging(rank).map(|staging| staging.bytes), Some(256 << 10));
        assert_eq!(engine.flag(RANKS - 1 - rank, 15), Ok(0));
    }
}
