//! Ranks of one node that are told to link over TCP, as ranks of several nodes do.

mod threads;
mod util;

use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Barrier;
use std::time::Instant;

use stepccl_bootstrap::{JoinConfig, MemoryStore, Mesh, Network, Store, StoreError, join};
use threads::{each, join_all};
use util::{config, soon};

fn everywhere(name: &str, rank: u32, ranks: u32) -> JoinConfig {
    JoinConfig {
        network: Network { everywhere: true, interfaces: None },
        ..config(name, rank, ranks)
    }
}

fn all_are_tcp(mesh: &Mesh) {
    let links: Vec<_> = mesh.links.iter().flatten().collect();
    assert_eq!(links.len() as u32, mesh.ranks - 1);
    assert!(links.iter().all(|link| link.stream.is_tcp() && link.pid == std::process::id()));
}

#[test]
fn links_over_tcp_carry_messages_and_no_descriptors() {
    let store = MemoryStore::new();
    let configs = (0..4).map(|rank| everywhere("w", rank, 4)).collect();
    each(configs, |config| {
        let rank = config.rank;
        let mut mesh = join(&store, config).unwrap();
        all_are_tcp(&mesh);
        let heard = mesh.exchange(&[rank as u8; 60_000], soon()).unwrap();
        for (peer, heard) in (0..).zip(heard) {
            assert_eq!(heard.is_some(), peer != u32::from(rank as u8), "{peer}");
            assert!(heard.is_none_or(|heard| heard == [peer as u8; 60_000]));
        }
        let file = tempfile::tempfile().unwrap();
        let descriptors = mesh.exchange_fd(file.as_fd(), soon()).unwrap();
        assert!(descriptors.iter().all(Option::is_none));
        mesh.exchange(&[], soon()).unwrap();
    });
}

#[test]
fn one_rank_decides_for_all() {
    let store = MemoryStore::new();
    let configs = vec![config("w", 0, 3), config("w", 1, 3), everywhere("w", 2, 3)];
    for mesh in join_all(&store, configs) {
        all_are_tcp(&mesh.unwrap());
    }
}

#[test]
fn no_interface_is_an_error_that_the_others_hear() {
    let store = MemoryStore::new();
    let nowhere = JoinConfig {
        network: Network { everywhere: true, interfaces: Some("=nosuch0".to_owned()) },
        ..config("w", 1, 2)
    };
    let results = join_all(&store, vec![everywhere("w", 0, 2), nowhere]);
    for result in results {
        let text = result.unwrap_err().to_string();
        assert!(text.contains("STEPCCL_SOCKET_IFNAME is =nosuch0"), "{text}");
    }
}

/// The first address that a rank published.
fn address(store: &dyn Store, rank: u32) -> SocketAddr {
    let entry = store.get(&format!("stepccl/w/reach/{rank}"), soon()).unwrap();
    assert_eq!(entry[..4], [4, 0, 0, 0], "an IPv4 address comes first");
    let octets: [u8; 4] = entry[4..8].try_into().unwrap();
    let port = u16::from_le_bytes(entry[8..10].try_into().unwrap());
    SocketAddr::new(IpAddr::from(octets), port)
}

/// A store that holds back the address of rank 1 until the strangers are connected.
#[derive(Debug)]
struct Held<'a> {
    store: &'a MemoryStore,
    gate: &'a Barrier,
}

impl Store for Held<'_> {
    fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        if key.ends_with("/reach/1") {
            self.gate.wait();
        }
        self.store.set(key, value)
    }

    fn get(&self, key: &str, deadline: Instant) -> Result<Vec<u8>, StoreError> {
        self.store.get(key, deadline)
    }

    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.try_get(key)
    }

    fn add(&self, key: &str, amount: i64) -> Result<i64, StoreError> {
        self.store.add(key, amount)
    }
}

#[test]
fn strangers_on_the_network_hold_nobody_up() {
    let (store, gate) = (MemoryStore::new(), Barrier::new(2));
    std::thread::scope(|scope| {
        let zero = scope.spawn(|| join(&store, everywhere("w", 0, 2)).unwrap());
        let held = Held { store: &store, gate: &gate };
        let one = scope.spawn(move || join(&held, everywhere("w", 1, 2)).unwrap());
        let at = address(&store, 0);
        let strangers: Vec<TcpStream> = [&b"GET / HTTP/1.1\r\n\r\n"[..], b"", &[0xff; 300]]
            .iter()
            .map(|bytes| {
                let mut stream = TcpStream::connect(at).unwrap();
                stream.write_all(bytes).unwrap();
                stream
            })
            .collect();
        gate.wait();
        let (zero, one) = (zero.join().unwrap(), one.join().unwrap());
        all_are_tcp(&one);
        all_are_tcp(&zero);
        assert!(zero.warnings.iter().any(|w| w.contains("127.0.0.1")), "{:?}", zero.warnings);
        assert!(TcpStream::connect(at).is_err(), "somebody still listens");
        drop(strangers);
    });
}
