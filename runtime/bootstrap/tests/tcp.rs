//! The TCP store among clients that misbehave.

mod threads;
mod util;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use stepccl_bootstrap::{Secret, Store, StoreError, TcpStore, TcpStoreLimits, TcpStoreServer};
use threads::join_all;
use util::{TIMEOUT, config, soon};

fn secret() -> Option<Secret> {
    config("w", 0, 1).secret
}

fn serve(secret: Option<Secret>, limits: TcpStoreLimits) -> (TcpStoreServer, String) {
    let server = TcpStoreServer::bind("127.0.0.1:0", secret, limits).unwrap();
    let address = server.address().to_string();
    (server, address)
}

#[test]
fn ranks_meet_over_it() {
    let (_server, address) = serve(secret(), TcpStoreLimits::default());
    let store = TcpStore::connect(&address, secret(), TIMEOUT).unwrap();
    let configs = (0..4).map(|rank| config("w", rank, 4)).collect();
    for mesh in join_all(&store, configs) {
        assert_eq!(mesh.unwrap().links.iter().flatten().count(), 3);
    }
}

#[test]
fn secrets_that_differ_are_refused_with_the_reason() {
    let other = Some(Secret::from_bytes([1; 32]));
    for (server, client, reason) in [
        (secret(), other, "client and server hold different secrets"),
        (secret(), None, "the server has a secret and the client has none"),
        (None, secret(), "the client has a secret and the server has none"),
    ] {
        let (_server, address) = serve(server, TcpStoreLimits::default());
        let error = TcpStore::connect(&address, client, TIMEOUT).unwrap_err();
        assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn a_client_comes_before_its_server() {
    let (server, address) = serve(None, TcpStoreLimits::default());
    drop(server);
    let early = Instant::now();
    let error = TcpStore::connect(&address, None, Duration::from_millis(80)).unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
    assert!(early.elapsed() >= Duration::from_millis(80));
    std::thread::scope(|scope| {
        let client = scope.spawn(|| TcpStore::connect(&address, None, TIMEOUT));
        std::thread::sleep(Duration::from_millis(30));
        let _server = TcpStoreServer::bind(&address, None, TcpStoreLimits::default()).unwrap();
        let client = client.join().unwrap().unwrap();
        client.set("k", b"v").unwrap();
    });
}

#[test]
fn a_server_that_ends_is_an_error_and_no_hang() {
    let (server, address) = serve(None, TcpStoreLimits::default());
    let store = TcpStore::connect(&address, None, Duration::from_millis(500)).unwrap();
    let error = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| store.get("never", soon()).unwrap_err());
        std::thread::sleep(Duration::from_millis(30));
        drop(server);
        waiter.join().unwrap()
    });
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
    assert!(matches!(store.set("k", b"v"), Err(StoreError::Unreachable { .. })));
}

#[test]
fn something_else_that_listens_there_is_told_apart() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(2) {
            stream.unwrap().write_all(b"\x10\0\0\0HTTP/1.1 400 Bad").unwrap();
        }
    });
    let error = TcpStore::connect(&address, None, TIMEOUT).unwrap_err();
    assert!(matches!(error, StoreError::Protocol { .. }), "{error:?}");
}

#[test]
fn garbage_and_floods_do_not_disturb_clients() {
    let (_server, address) = serve(secret(), TcpStoreLimits { connections: 8, bytes: 1 << 20 });
    let store = TcpStore::connect(&address, secret(), TIMEOUT).unwrap();
    store.set("k", b"v").unwrap();
    let mut held = Vec::new();
    for round in 0..40u8 {
        let mut stream = TcpStream::connect(&address).unwrap();
        match round % 4 {
            0 => stream.write_all(&u32::MAX.to_le_bytes()).unwrap(),
            1 => stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap(),
            2 => stream.write_all(&[67, 0, 0, 0, 1, 0, 1]).unwrap(),
            _ => {}
        }
        held.push(stream);
        assert_eq!(store.try_get("k").unwrap().unwrap(), b"v");
    }
    // Of those that said nothing the oldest were closed to make room.
    held[3].set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut greeting = Vec::new();
    drop(held[3].read_to_end(&mut greeting));
    assert!(greeting.len() <= 47, "a greeting and no more: {greeting:?}");
}

#[test]
fn memory_is_bounded() {
    let (_server, address) = serve(None, TcpStoreLimits { connections: 8, bytes: 100_000 });
    let store = TcpStore::connect(&address, None, TIMEOUT).unwrap();
    store.set("half", &[1; 50_000]).unwrap();
    let error = store.set("more", &[1; 60_000]).unwrap_err();
    assert!(error.to_string().contains("do not fit"), "{error}");
    assert_eq!(store.try_get("half").unwrap().unwrap().len(), 50_000);
    store.set("half", b"small").unwrap();
    store.set("more", &[1; 60_000]).unwrap();
}
