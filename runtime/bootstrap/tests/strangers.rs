//! Processes that are no part of the job find a rank's socket.

mod util;

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use stepccl_bootstrap::{MemoryStore, Mesh, Store, join};
use util::{config, soon};

/// Where the random part of the socket's name stands in what a rank publishes.
const SOCKET: std::ops::Range<usize> = 36..52;

fn connect(store: &dyn Store, name: &str, rank: u32) -> UnixStream {
    let info = store.get(&format!("stepccl/{name}/info/{rank}"), soon()).unwrap();
    let hex: String = info[SOCKET].iter().map(|byte| format!("{byte:02x}")).collect();
    let address = SocketAddr::from_abstract_name(format!("stepccl-{hex}")).unwrap();
    UnixStream::connect_addr(&address).unwrap()
}

fn frame(kind: u8, fields: &[&[u8]]) -> Vec<u8> {
    let body = fields.concat();
    let mut out = (body.len() as u32 + 1).to_le_bytes().to_vec();
    out.push(kind);
    out.extend(body);
    out
}

fn hello(from: u32, to: u32) -> Vec<u8> {
    frame(1, &[&1u16.to_le_bytes(), &from.to_le_bytes(), &to.to_le_bytes(), &[9; 32]])
}

/// Two ranks join while `strangers` are connected to rank 0 already.
fn meet_among(name: &str, strangers: impl FnOnce(&dyn Store) -> Vec<UnixStream>) -> Vec<Mesh> {
    let store = MemoryStore::new();
    std::thread::scope(|scope| {
        let zero = scope.spawn(|| join(&store, config(name, 0, 2)).unwrap());
        // Rank 0 listens and waits for rank 1; the strangers are first in its queue.
        let held = strangers(&store);
        let begin = Instant::now();
        let one = join(&store, config(name, 1, 2)).unwrap();
        let zero = zero.join().unwrap();
        assert!(begin.elapsed() < Duration::from_secs(4), "a stranger held the ranks up");
        drop(held);
        vec![zero, one]
    })
}

fn check(meshes: &mut [Mesh]) {
    let (zero, one) = meshes.split_at_mut(1);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| one[0].exchange(b"one", soon()).unwrap());
        assert_eq!(zero[0].exchange(b"zero", soon()).unwrap()[1].as_deref(), Some(&b"one"[..]));
        assert_eq!(other.join().unwrap()[0].as_deref(), Some(&b"zero"[..]));
    });
}

#[test]
fn strangers_are_dropped_and_reported() {
    let mut meshes = meet_among("w", |store| {
        let sends: [&[u8]; 7] = [
            b"GET / HTTP/1.1\r\n\r\n",
            &u32::MAX.to_le_bytes(),
            &[0; 8],
            &frame(3, &[&[0; 32]]),
            &hello(0, 1),
            &hello(4096, 0),
            &frame(5, &[b"go away"]),
        ];
        let mut held: Vec<_> = sends
            .iter()
            .map(|bytes| {
                let mut stream = connect(store, "w", 0);
                stream.write_all(bytes).unwrap();
                stream
            })
            .collect();
        drop(connect(store, "w", 0));
        // One that stays silent and one that stops in the middle.
        held.push(connect(store, "w", 0));
        let mut half = connect(store, "w", 0);
        half.write_all(&hello(1, 0)[..20]).unwrap();
        held.push(half);
        held
    });
    check(&mut meshes);
    let warnings = &meshes[0].warnings;
    assert_eq!(warnings.len(), 8, "{warnings:#?}");
    let all = warnings.join("\n");
    let pid = format!("pid {}", std::process::id());
    assert!(warnings.iter().all(|warning| warning.contains(&pid)), "{all}");
    for reason in ["4294967295 bytes", "a proof is not due", "rank 4096", "go away", "closed"] {
        assert!(all.contains(reason), "{reason} is not in\n{all}");
    }
    assert!(meshes[1].warnings.is_empty());
}

#[test]
fn who_does_not_know_the_secret_is_told_and_gets_no_proof() {
    let store = MemoryStore::new();
    std::thread::scope(|scope| {
        let zero = scope.spawn(|| join(&store, config("w", 0, 3)).unwrap());
        let two = scope.spawn(|| {
            store.get("stepccl/w/info/0", soon()).unwrap();
            // The impostor comes first and takes the place of rank 2 in a handshake.
            let impostor = impostor(&store);
            let mesh = join(&store, config("w", 2, 3)).unwrap();
            (impostor.join().unwrap(), mesh)
        });
        let one = scope.spawn(|| join(&store, config("w", 1, 3)).unwrap());
        let (told, _) = two.join().unwrap();
        assert!(zero.join().is_ok() && one.join().is_ok());
        // A challenge of 37 bytes, then the refusal or, where the ranks were faster, the end.
        assert!(told.len() >= 37 && told[4] == 2, "{told:?}");
        assert!(told.len() == 37 || told[41] == 5, "{told:?}");
    });
}

fn impostor(store: &dyn Store) -> std::thread::JoinHandle<Vec<u8>> {
    let mut stream = connect(store, "w", 0);
    std::thread::spawn(move || {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(&hello(2, 0)).unwrap();
        let mut told = vec![0; 37];
        stream.read_exact(&mut told).unwrap();
        // The rank may be done with everybody and gone.
        drop(stream.write_all(&frame(3, &[&[0; 32]])));
        drop(stream.read_to_end(&mut told));
        told
    })
}

#[test]
fn a_flood_of_silent_strangers_does_not_keep_a_rank_out() {
    let mut meshes = meet_among("w", |store| (0..120).map(|_| connect(store, "w", 0)).collect());
    check(&mut meshes);
    assert!(meshes[0].warnings[0].contains("too many connections"), "{:?}", meshes[0].warnings);
    assert!(meshes[0].warnings.len() <= 32);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn no_bytes_of_a_stranger_stop_the_job(sends in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..6)) {
        let mut meshes = meet_among("w", |store| {
            sends.iter().map(|bytes| {
                let mut stream = connect(store, "w", 0);
                stream.write_all(bytes).unwrap();
                stream
            }).collect()
        });
        check(&mut meshes);
    }
}
