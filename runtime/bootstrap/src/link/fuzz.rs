//! Fuzz target over the handshake: frames that were changed on the way never make a link.

use super::frame::{Frame, FrameReader};
use super::handshake::{Acceptor, Connector, Session, Step};
use crate::Secret;
use crate::info::{Info, SignedInfo};

fn session(rank: u32) -> Session {
    let infos = (0..3)
        .map(|rank| {
            let info = Info {
                rank,
                ranks: 3,
                pid: 1,
                uid: 1,
                host: [0; 16],
                socket: [rank as u8; 16],
                nonce: [7; 32],
                node: String::new(),
                note: vec![],
                everywhere: false,
            };
            SignedInfo { info, digest: [rank as u8; 32] }
        })
        .collect();
    Session { name: "w".to_owned(), rank, secret: Secret::from_bytes([5; 32]), infos }
}

/// Feed `bytes` as a stream would; the frames, and how many bytes were left.
fn read(mut bytes: &[u8], piece: usize) -> Vec<Frame> {
    let (mut reader, mut frames) = (FrameReader::default(), Vec::new());
    while let Ok(wanted) = reader.wanted() {
        assert!(wanted > 0 && wanted <= 1024, "{wanted} bytes are wanted");
        let (now, rest) = bytes.split_at(wanted.min(piece).min(bytes.len()));
        if now.is_empty() {
            break;
        }
        bytes = rest;
        match reader.push(now) {
            Ok(frame) => frames.extend(frame),
            Err(_) => break,
        }
    }
    frames
}

/// The first byte is the size of the pieces in which frames arrive, and each next one says where
/// the frame that is due is changed, in three bytes: not at all, by a bit, or by what the input has.
pub(crate) fn handshake(data: &[u8]) {
    let Some((piece, mut rest)) = data.split_first() else { return };
    let piece = usize::from(*piece).max(1);
    let (low, high) = (session(0), session(2));
    let mut acceptor = Acceptor::new([1; 32]);
    let (mut connector, mut due) = Connector::start(&high, 0, [2; 32]);
    let mut changed = false;
    // Hello, challenge, proof, welcome.
    for turn in 0..4 {
        let mut bytes = Vec::new();
        due.encode(&mut bytes);
        if let [how, at, bit, more @ ..] = rest {
            rest = more;
            match how % 3 {
                0 => {}
                1 => {
                    let place = usize::from(*at) % bytes.len();
                    bytes[place] ^= 1 << (bit % 8);
                }
                _ => {
                    bytes = rest[..rest.len().min(usize::from(*at))].to_vec();
                    rest = &rest[bytes.len()..];
                }
            }
        }
        let frames = read(&bytes, piece);
        let Some(frame) = frames.into_iter().next() else { return };
        changed |= frame != due;
        let step = match turn % 2 {
            0 => acceptor.on(&low, frame),
            _ => connector.on(&high, frame),
        };
        due = match step {
            Step::Send(frame) => frame,
            Step::Linked(rank, frame) => {
                assert!(!changed, "a changed frame made a link with rank {rank}");
                match frame {
                    Some(frame) => frame,
                    None => return,
                }
            }
            Step::Fail { .. } | Step::Refused(_) => return,
        };
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut refusal = Vec::new();
    Frame::Refuse { reason: "no".to_owned() }.encode(&mut refusal);
    let length = refusal.len() as u8;
    let raw = |before: &[u8]| [&[9], before, &[2, length, 0][..], &refusal].concat();
    let mut seeds = vec![vec![255], vec![1], raw(&[]), raw(&[0, 0, 0]), raw(&[0; 6]), raw(&[0; 9])];
    for turn in 0..4 {
        for at in [0, 4, 5, 12, 20] {
            seeds.push([&[60][..], &vec![0; 3 * turn], &[1, at, 3]].concat());
        }
    }
    seeds
}
