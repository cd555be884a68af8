//! Entry points of the fuzz targets of this crate; see `tests/fuzz`.

use crate::info::{Info, InfoError, Opening, SignedInfo, encode_table, nodes, parse_table};
use crate::{Secret, auth, link, reach, store};

/// Frames of the handshake between two ranks; panics where a changed frame makes a link.
pub fn handshake(data: &[u8]) {
    link::fuzz::handshake(data);
}

/// First inputs of [`handshake()`].
#[must_use]
pub fn handshake_seeds() -> Vec<Vec<u8>> {
    link::fuzz::seeds()
}

/// Messages between the TCP store and its clients.
pub fn store(data: &[u8]) {
    store::tcp::fuzz::store(data);
}

/// First inputs of [`store()`].
#[must_use]
pub fn store_seeds() -> Vec<Vec<u8>> {
    store::tcp::fuzz::seeds()
}

const NAME: &str = "world.0";

fn secret() -> Secret {
    Secret::from_bytes([5; 32])
}

fn sample(rank: u32) -> Info {
    Info {
        rank,
        ranks: 2,
        pid: 77,
        uid: 1000,
        host: [rank as u8; 16],
        socket: [2; 16],
        nonce: [3; 32],
        node: "node-a".to_owned(),
        note: vec![1, 2, 3],
        everywhere: rank == 1,
    }
}

/// `bytes` with a proof of the secret behind them, as only who knows it can make one: a rank of
/// another release may say anything.
fn proven(fields: &[u8], label: &str, parts: &[&[u8]]) -> Vec<u8> {
    let mut transcript = auth::Transcript::new(&secret(), label);
    for part in parts {
        transcript = transcript.part(part);
    }
    [fields, &transcript.part(fields).tag()].concat()
}

/// A value of the store; the first byte says of which kind.
pub fn published(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else { return };
    match kind % 5 {
        0 => {
            let Some(opening) = Opening::parse(bytes) else { return };
            assert!(bytes.starts_with(&opening.encode()));
            let own = Opening { version: 1, oldest: 1, rank: 0, ranks: 2, given_secret: false };
            let _ = own.conflict(&opening);
        }
        1 => info(bytes, false),
        2 => info(&proven(bytes, crate::info::LABEL, &[NAME.as_bytes()]), true),
        3 => {
            let table = parse_table(bytes, 2);
            if let Some(entries) = table {
                let owned: Vec<_> = entries.iter().map(|entry| entry.to_vec()).collect();
                assert_eq!(encode_table(&owned), bytes);
            }
        }
        _ => {
            let parts = [NAME.as_bytes(), &1u32.to_le_bytes()];
            let bytes = proven(bytes, reach::LABEL, &parts);
            if let Ok(addresses) = reach::parse(&bytes, NAME, 1, &secret()) {
                let again = reach::sign(&addresses, NAME, 1, &secret());
                assert_eq!(reach::parse(&again, NAME, 1, &secret()), Ok(addresses));
            }
        }
    }
}

fn info(bytes: &[u8], proven: bool) {
    match SignedInfo::parse(bytes, NAME, &secret(), 1, 2) {
        Ok(signed) => {
            assert_eq!((signed.info.rank, signed.info.ranks), (1, 2));
            assert!(!signed.info.node.chars().any(char::is_control));
            assert_eq!(nodes(&[signed]), [0]);
        }
        Err(InfoError::WrongProof) => assert!(!proven),
        Err(InfoError::Invalid(text) | InfoError::Version(text)) => assert!(!text.is_empty()),
    }
}

/// First inputs of [`published()`].
#[must_use]
pub fn published_seeds() -> Vec<Vec<u8>> {
    let opening = Opening { version: 1, oldest: 1, rank: 1, ranks: 2, given_secret: true };
    let infos = [0, 1].map(|rank| sample(rank).sign(NAME, &secret()));
    let fields = infos[1][..infos[1].len() - auth::TAG_BYTES].to_vec();
    let addresses = ["10.0.0.1:4000", "[fe80::1]:1"].map(|text| text.parse().ok());
    let addresses: Vec<_> = addresses.into_iter().flatten().collect();
    let reach = reach::sign(&addresses, NAME, 1, &secret());
    let reach = reach[..reach.len() - auth::TAG_BYTES].to_vec();
    [
        (0, opening.encode()),
        (1, infos[1].clone()),
        (2, fields),
        (3, encode_table(&infos)),
        (4, reach),
    ]
    .into_iter()
    .map(|(kind, bytes)| [&[kind][..], &bytes].concat())
    .collect()
}
