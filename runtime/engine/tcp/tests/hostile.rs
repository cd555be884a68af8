//! A peer that lies, sends garbage or asks for too much is given up with an error that says what
//! it sent; the engine goes on for everybody else, and ends.

#[expect(dead_code, reason = "every test binary uses a part of it")]
mod world;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use stepccl_engine::{Engine, LostPeer, REASON_BYTES, RankState};
use stepccl_engine_tcp::{TcpConfig, TcpEngine, TcpLink};

/// Far above what a loaded machine needs.
const LONG: Duration = Duration::from_secs(30);

fn frame(kind: u32, id: u32, first: u64, second: u64) -> Vec<u8> {
    let mut out = [kind.to_le_bytes(), id.to_le_bytes()].concat();
    out.extend(first.to_le_bytes());
    out.extend(second.to_le_bytes());
    out
}

/// What rank 1 of 2 says first, as these engines are started.
fn hello() -> Vec<u8> {
    frame(1, 2 << 24 | 16, 1 << 32 | 2, 256 << 10)
}

/// Why a peer fails, as it would say it.
fn reason(text: &[u8]) -> Vec<u8> {
    let mut out = frame(12, 0, 0, 0);
    out.extend(text);
    out.resize(24 + REASON_BYTES, 0);
    out
}

/// An engine of rank 0, and the other end of its connection with rank 1.
fn engine() -> (TcpEngine, TcpStream) {
    let (one, other) = world::pair();
    let host = world::hosts(1, 0).remove(0);
    let config =
        TcpConfig { rank: 0, ranks: 2, local: vec![0], link_timeout: Duration::from_secs(20) };
    let links = vec![TcpLink { rank: 1, pid: 4242, stream: one }];
    (TcpEngine::new(&config, host, links).unwrap(), other)
}

/// Wait until the engine has given rank 1 up; why.
fn given_up(engine: &mut TcpEngine) -> String {
    let start = Instant::now();
    loop {
        let mut lost = Vec::new();
        engine.lost_peers(&mut lost);
        if let [LostPeer { rank: 1, pid: 4242, state: RankState::Running }] = lost[..] {
            return engine.why_lost(1).unwrap_or_else(|| "it closed".to_owned());
        }
        assert!(start.elapsed() < LONG, "rank 1 is not given up: {lost:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn every_lie_is_named() {
    let ok = hello();
    for (sent, says) in [
        (frame(1, 1 << 24 | 16, 1 << 32 | 2, 256 << 10), "same version and settings"),
        (frame(1, 2 << 24 | 17, 1 << 32 | 2, 256 << 10), "same version and settings"),
        (frame(9, 0, 0, 0), "Hello"),
        (b"GET / HTTP/1.1\r\nHost: stepccl\r\n\r\n".to_vec(), "unknown kind"),
        ([&ok[..], &ok].concat(), "a second hello"),
        ([&ok[..], &frame(2, 16, 1, 0)].concat(), "flag 16; there are 16"),
        ([&ok[..], &frame(2, 3, 7, 0), &frame(2, 3, 5, 0)].concat(), "flag 3 with 5 after 7"),
        ([&ok[..], &frame(3, 0, 256 << 10, 1)].concat(), "1 bytes at 262144"),
        ([&ok[..], &frame(3, 0, u64::MAX, 2)].concat(), "of a staging of 262144"),
        ([&ok[..], &frame(4, 0, 8, 0)].concat(), "an answer to read 0, which was not asked for"),
        ([&ok[..], &frame(4, 0, 1 << 40, 0)].concat(), "a payload of 1099511627776 bytes"),
        ([&ok[..], &frame(5, 0, 0, 200 << 10)].concat(), "a payload of 204800 bytes"),
        ([&ok[..], &frame(5, 0, 262_140, 8)].concat(), "8 bytes at 262140"),
        ([&ok[..], &frame(6, 0, 8, 0)].concat(), "an acknowledgement of write 0"),
        ([&ok[..], &frame(7, 3, 0, 0)].concat(), "fields that it does not have"),
        ([&ok[..], &frame(8, 0, 0, 8)].concat(), "a will while it does not leave"),
        ([&ok[..], &frame(11, 0, 5, 1 << 30)].concat(), "a post of 1073741824 bytes"),
        (
            [&ok[..], &frame(12, 0, 1 << 30, 0)].concat(),
            "kind 12 with fields that it does not have",
        ),
        ([&ok[..], &reason(b"one"), &reason(b"two")].concat(), "a reason of a failure"),
        ([&ok[..], &frame(13, 0, 0, 0)].concat(), "unknown kind 13"),
        (ok, "it closed"),
    ] {
        let (mut engine, mut peer) = engine();
        peer.write_all(&sent).unwrap();
        if says == "it closed" {
            drop(peer);
        }
        let why = given_up(&mut engine);
        assert!(why.contains(says), "{says:?} is missing: {why}");
        assert_eq!(engine.flag(0, 0), Ok(0));
    }
}

/// Why a connection ended is not what a peer said of its failure, whatever comes after.
#[test]
fn the_reason_of_a_failure_is_cleaned_and_apart_from_the_connection() {
    let failed = frame(7, 2, 1, 0);
    let lie = frame(13, 0, 0, 0);
    let hostile = reason(b"\xff\x1b[2J\nrank 0 is to blame\0");
    for (sent, expected) in [
        ([&hostile[..], &failed, &lie].concat(), Some("\u{fffd} [2J rank 0 is to blame")),
        ([&failed[..], &lie].concat(), None),
        ([&failed[..], &reason(b"late")].concat(), None),
        ([&reason(b" \n"), &failed[..], &lie].concat(), None),
    ] {
        let (mut engine, mut peer) = engine();
        peer.write_all(&[&hello()[..], &sent].concat()).unwrap();
        // The lie ends the connection; nothing more comes.
        peer.set_read_timeout(Some(LONG)).unwrap();
        drop(peer.read_to_end(&mut Vec::new()));
        let mut lost = Vec::new();
        engine.lost_peers(&mut lost);
        let state = RankState::Failed { culprit: 1 };
        assert_eq!(lost, [LostPeer { rank: 1, pid: 4242, state }]);
        assert_eq!(engine.why_lost(1).as_deref(), expected);
    }
}

#[test]
fn half_a_reason_is_none() {
    let (mut engine, mut peer) = engine();
    let sent = [hello(), reason(b"a failure")].concat();
    peer.write_all(&sent[..sent.len() - 1]).unwrap();
    peer.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(given_up(&mut engine), "it closed");
}

#[test]
fn who_asks_and_does_not_listen_is_bounded() {
    let (mut engine, mut peer) = engine();
    peer.write_all(&hello()).unwrap();
    // More reads than any rank may ask for, none of whose answers is taken.
    for id in 0..1000 {
        if peer.write_all(&frame(3, id, 0, 256 << 10)).is_err() {
            break;
        }
    }
    let why = given_up(&mut engine);
    assert!(why.contains("more than 64 reads at once") || why == "it closed", "{why}");
}

#[test]
fn half_a_frame_keeps_nobody_from_leaving() {
    let (engine, mut peer) = engine();
    peer.write_all(&hello()).unwrap();
    peer.write_all(&frame(5, 0, 0, 4096)[..10]).unwrap();
    let start = Instant::now();
    drop(engine);
    assert!(start.elapsed() < LONG, "the end took {:?}", start.elapsed());
    let mut rest = Vec::new();
    peer.set_read_timeout(Some(LONG)).unwrap();
    // A reset is an end too.
    drop(peer.read_to_end(&mut rest));
    assert!(rest.len() >= 24, "it said hello");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn frames_of_any_content_do_no_harm(
        frames in prop::collection::vec(
            (0u32..14, prop_oneof![0u32..4, any::<u32>()],
             prop_oneof![0u64..64, any::<u64>()], prop_oneof![0u64..64, any::<u64>()]),
            0..30,
        ),
        payload in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let (mut engine, mut peer) = engine();
        let mut sent = hello();
        for (kind, id, first, second) in frames {
            sent.extend(frame(kind, id, first, second));
        }
        sent.extend(payload);
        // The engine may be done with this peer before all is sent.
        drop(peer.write_all(&sent));
        drop(peer);
        let start = Instant::now();
        let mut lost = Vec::new();
        while lost.is_empty() && start.elapsed() < LONG {
            engine.lost_peers(&mut lost);
        }
        prop_assert_eq!(lost.len(), 1);
        prop_assert_eq!(engine.flag(0, 0), Ok(0));
    }
}
