//! Ranks on two nodes, which are network namespaces: everything goes over TCP between them.
//!
//! The test starts this very binary again in the namespaces; the child runs `child` alone.

#[path = "common/footprint.rs"]
#[expect(dead_code, reason = "these ranks are alone in their processes anyway")]
mod footprint;
#[path = "common/nodes.rs"]
mod nodes;

use std::path::Path;
use std::time::{Duration, Instant};

use footprint::Footprint;
use nodes::{Nodes, Process, skip};
use stepccl::{Communicator, Config, Error, FileStore, LossReason, MemoryStore, ReduceOp};

const ROLE: &str = "STEPCCL_TEST_ROLE";
const RANKS: &str = "STEPCCL_TEST_RANKS";
const WORLD: &str = "STEPCCL_TEST_WORLD";
const STORE: &str = "STEPCCL_TEST_STORE";
/// A file that ranks make when they are at work.
const STARTED: &str = "started";
/// Far above what a loaded machine needs.
const LONG: Duration = Duration::from_secs(60);

fn env(name: &str) -> String {
    std::env::var(name).unwrap()
}

/// Start the ranks of each node, such as `["0,2", "1"]`.
fn start(
    nodes: &Nodes,
    role: &str,
    ranks: [&str; 2],
    store: &Path,
    more: &[(&str, String)],
) -> Vec<Process> {
    let world = ranks.iter().flat_map(|ranks| ranks.split(',')).count();
    let variables = |ranks: &str| {
        let own = [
            (ROLE, role.to_owned()),
            (RANKS, ranks.to_owned()),
            (WORLD, world.to_string()),
            (STORE, store.display().to_string()),
        ];
        [&own[..], more].concat()
    };
    let mut processes = Vec::new();
    for (node, ranks) in ranks.iter().enumerate() {
        for rank in ranks.split(',') {
            processes.push(nodes.start(node, &variables(rank)));
        }
    }
    processes
}

fn together(role: &str, ranks: [&str; 2], more: &[(&str, String)]) {
    let Some(nodes) = Nodes::new() else { return };
    let store = tempfile::tempdir().unwrap();
    for process in &mut start(&nodes, role, ranks, store.path(), more) {
        process.succeeds(LONG);
    }
}

#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let world: u32 = env(WORLD).parse().unwrap();
    let rank: u32 = env(RANKS).parse().unwrap();
    let directory = env(STORE);
    let store = FileStore::open(Path::new(&directory)).unwrap();
    let config = Config { timeout: LONG, ..Config::from_env().unwrap() };
    let connect = |config: &Config| Communicator::new(&store, "nodes.0", rank, world, config);
    match role.as_str() {
        "secrets" => {
            let secret = Some(format!("secret of rank {rank:020}"));
            let error = connect(&Config { secret, ..config }).unwrap_err().to_string();
            assert!(error.contains("secret"), "{error}");
        }
        "refused" => {
            let error = connect(&config).unwrap_err().to_string();
            assert!(error.contains("over several nodes"), "{error}");
        }
        "unreachable" => {
            // Rank 1 dials and knows why: it must not be told first that rank 0 has given up.
            let seconds = if rank == 0 { 15 } else { 4 };
            let config = Config { start_timeout: Duration::from_secs(seconds), ..config };
            let error = connect(&config).unwrap_err().to_string();
            assert!(error.contains("rank 1") && error.contains("rank 0"), "{error}");
            assert!(rank == 0 || error.contains("STEPCCL_SOCKET_IFNAME"), "{error}");
        }
        "work" => {
            let comm = connect(&config).unwrap();
            assert_eq!(comm.stats().engine, "tcp");
            work(&comm, world);
        }
        "leave" => leave(&connect(&config).unwrap(), world),
        "mourn" => {
            // What is made once a process is there before.
            drop(Communicator::new(&MemoryStore::new(), "alone.0", 0, 1, &config).unwrap());
            let before = Footprint::now();
            let comm = connect(&config).unwrap();
            work(&comm, world);
            std::fs::write(Path::new(&directory).join(format!("{STARTED}{rank}")), b"").unwrap();
            mourn(&comm, rank);
            drop(comm);
            before.assert_restored("the loss of another node");
        }
        "abort" => {
            let comm = connect(&config).unwrap();
            work(&comm, world);
            if rank == 0 {
                return comm.abort("a key\nwas pressed");
            }
            let error = comm.recv(&mut [0u8; 4], 0).unwrap_err();
            let Error::PeerLost { peer: 0, reason: LossReason::Aborted { reason }, .. } = &error
            else {
                panic!("{error}")
            };
            assert_eq!(reason, "a key was pressed");
        }
        other => panic!("{other:?}"),
    }
}

/// Every collective and messages, short and long, against their definition.
fn work(comm: &Communicator, world: u32) {
    let (rank, n) = (u64::from(comm.rank()), u64::from(world));
    for count in [1usize, 100, 5_000, 300_000] {
        let value = |rank: u64, block: u64, i: u64| rank * 1_000_003 + block * 7 + i;
        let row = |rank: u64, block: u64| -> Vec<u64> {
            (0..count as u64).map(|i| value(rank, block, i)).collect()
        };
        let rows = |rank: u64| -> Vec<i64> {
            (0..n).flat_map(|block| row(rank, block)).map(|v| v as i64).collect()
        };
        let own: Vec<i64> = row(rank, 0).into_iter().map(|v| v as i64).collect();
        let sums = |block: u64| -> Vec<i64> {
            (0..count as u64).map(|i| (0..n).map(|r| value(r, block, i) as i64).sum()).collect()
        };
        let mut out = own.clone();
        comm.all_reduce_in_place(&mut out, ReduceOp::Sum).unwrap();
        assert!(out == sums(0), "all_reduce of {count}");
        let root = world - 1;
        comm.broadcast(&mut out, root).unwrap();
        assert!(out == sums(0), "broadcast of {count}");
        let mut all = vec![0i64; count * world as usize];
        comm.all_gather(&own, &mut all).unwrap();
        for (from, block) in (0..n).zip(all.chunks(count)) {
            assert!(block.iter().copied().eq(row(from, 0).into_iter().map(|v| v as i64)));
        }
        comm.reduce_scatter(&rows(rank), &mut out, ReduceOp::Sum).unwrap();
        assert!(out == sums(rank), "reduce_scatter of {count}");
        comm.all_to_all(&rows(rank), &mut all).unwrap();
        for (from, block) in (0..n).zip(all.chunks(count)) {
            assert!(block.iter().copied().eq(row(from, rank).into_iter().map(|v| v as i64)));
        }
        let is_root = comm.rank() == root;
        comm.gather(&own, is_root.then_some(&mut all[..]), root).unwrap();
        comm.scatter(is_root.then_some(&all[..]), &mut out, root).unwrap();
        assert!(out == own, "gather and scatter of {count}");
        if comm.rank() == 0 {
            comm.send(&own, root).unwrap();
        } else if is_root {
            comm.recv(&mut out, 0).unwrap();
            assert!(out.iter().copied().eq(row(0, 0).into_iter().map(|v| v as i64)));
        }
    }
    comm.barrier().unwrap();
}

/// Rank 0 leaves as soon as it has all it needs, while the others still read what it left them.
fn leave(comm: &Communicator, world: u32) {
    let mut data = vec![i64::from(comm.rank()) + 1; 40_000];
    if comm.rank() != 0 {
        // Rank 0 is long gone from its call when this rank reads.
        std::thread::sleep(Duration::from_millis(600));
    }
    comm.broadcast(&mut data, 0).unwrap();
    assert!(data.iter().all(|v| *v == 1));
    if comm.rank() != 0 && world > 2 {
        comm.send(&[1u8], comm.rank() % (world - 1) + 1).unwrap();
    }
}

/// Work until a peer is lost, and say who it was.
fn mourn(comm: &Communicator, rank: u32) {
    let mut data = vec![1.0f32; 50_000];
    let error = loop {
        if let Err(error) = comm.all_reduce_in_place(&mut data, ReduceOp::Max) {
            break error;
        }
    };
    let Error::PeerLost { peer, .. } = &error else { panic!("{error}") };
    assert_ne!(*peer, rank, "{error}");
    let want = std::env::var("STEPCCL_TEST_SAYS").unwrap_or_default();
    assert!(error.to_string().contains(&want), "{want:?} is missing: {error}");
}

/// Wait until all of so many ranks are at work.
fn all_started(store: &Path, ranks: u32) {
    let until = Instant::now() + LONG;
    while !(0..ranks).all(|rank| store.join(format!("{STARTED}{rank}")).exists()) {
        assert!(Instant::now() < until, "the ranks do not start");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn one_rank_a_node() {
    together("work", ["0", "1"], &[]);
}

#[test]
fn two_ranks_here_and_one_there() {
    together("work", ["0,2", "1"], &[]);
}

#[test]
fn two_ranks_a_node_by_each_algorithm_that_knows_nodes() {
    together("work", ["0,1", "2,3"], &[]);
    let algorithm = |name: &str| [("STEPCCL_ALGORITHM", name.to_owned())];
    together("work", ["0,1", "2,3"], &algorithm("hierarchical"));
    together("work", ["0,1", "2,3"], &algorithm("ring"));
}

#[test]
fn the_host_engine_alone_is_refused_with_the_way_out() {
    together("refused", ["0", "1"], &[("STEPCCL_ENGINE", "host".to_owned())]);
}

#[test]
fn wrong_secrets_are_refused_on_both_sides() {
    together("secrets", ["0", "1"], &[]);
}

#[test]
fn who_leaves_early_leaves_its_data() {
    together("leave", ["0", "1"], &[]);
}

#[test]
fn addresses_that_lead_nowhere_are_passed_over() {
    let Some(nodes) = Nodes::new() else { return };
    // Rank 0 publishes addresses that the other node has no way to, or that nobody answers.
    nodes.ip(0, "link add eth1 type veth peer name eth2").unwrap();
    nodes.ip(0, "addr add 10.0.0.77/24 dev eth1").unwrap();
    nodes.ip(0, "link set eth1 up").unwrap();
    let store = tempfile::tempdir().unwrap();
    for process in &mut start(&nodes, "work", ["0", "1"], store.path(), &[]) {
        process.succeeds(LONG);
    }
}

#[test]
fn a_node_that_cannot_be_reached_is_an_error_with_its_addresses() {
    let Some(nodes) = Nodes::new() else { return };
    nodes.ip(1, "link set eth0 down").unwrap();
    nodes.ip(1, "link add eth1 type veth peer name eth2").unwrap();
    nodes.ip(1, "addr add 10.0.0.77/24 dev eth1").unwrap();
    nodes.ip(1, "link set eth1 up").unwrap();
    let store = tempfile::tempdir().unwrap();
    for process in &mut start(&nodes, "unreachable", ["0", "1"], store.path(), &[]) {
        process.succeeds(LONG);
    }
}

#[test]
fn a_killed_rank_is_named_by_all_others() {
    let Some(nodes) = Nodes::new() else { return };
    let store = tempfile::tempdir().unwrap();
    let mut processes = start(&nodes, "mourn", ["0,1", "2"], store.path(), &[]);
    all_started(store.path(), 3);
    let mut last = processes.pop().unwrap();
    last.kill();
    let killed = Instant::now();
    for process in &mut processes {
        process.succeeds(LONG);
    }
    eprintln!("noticed after {:?}", killed.elapsed());
}

#[test]
fn an_abort_is_told_to_the_other_node_with_its_reason() {
    together("abort", ["0", "1"], &[]);
}

#[test]
fn a_cut_link_is_an_error_that_names_the_peer() {
    let Some(nodes) = Nodes::new() else { return };
    let store = tempfile::tempdir().unwrap();
    let more = [
        ("STEPCCL_LINK_TIMEOUT", "2".to_owned()),
        ("STEPCCL_TEST_SAYS", "connection to 10.99.".to_owned()),
    ];
    let mut processes = start(&nodes, "mourn", ["0", "1"], store.path(), &more);
    all_started(store.path(), 2);
    nodes.ip(0, "link set eth0 down").unwrap();
    let cut = Instant::now();
    for process in &mut processes {
        process.succeeds(LONG);
    }
    eprintln!("noticed after {:?}", cut.elapsed());
}

#[test]
fn loss_and_delay_change_nothing() {
    let Some(nodes) = Nodes::new() else { return };
    for node in 0..2 {
        let name = nodes.name(node);
        let netem = "qdisc add dev eth0 root netem delay 2ms loss 1%";
        if let Err(reason) = nodes::run(&format!("tc -n {name} {netem}")) {
            return skip(&format!("this kernel loses no packets: {reason}"));
        }
    }
    let store = tempfile::tempdir().unwrap();
    for process in &mut start(&nodes, "work", ["0", "1"], store.path(), &[]) {
        process.succeeds(LONG);
    }
}
