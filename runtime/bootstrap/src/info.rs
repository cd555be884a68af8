//! What a rank publishes about itself, and the table of all ranks. Pure.

use crate::auth::{Nonce, TAG_BYTES, Transcript, digest};
use crate::host::HostId;
use crate::wire::{Reader, printable, put_block};
use crate::{MAX_NOTE_BYTES, MAX_RANKS, Secret};

/// Version of what ranks say to one another.
pub(crate) const VERSION: u16 = 1;

/// Oldest version this release understands.
pub(crate) const OLDEST: u16 = 1;

/// Longest node name in bytes.
const MAX_NODE_BYTES: usize = 64;

/// Longest published value in bytes: the fixed fields are below 256 bytes.
const MAX_INFO_BYTES: usize = MAX_NOTE_BYTES + MAX_NODE_BYTES + 256;

pub(crate) const LABEL: &str = "stepccl info 1";

/// Why two versions cannot work together, if so.
pub(crate) fn version_conflict(version: u16, oldest: u16) -> Option<String> {
    (version < OLDEST || VERSION < oldest).then(|| {
        format!(
            "it speaks version {version} and accepts {oldest} or newer, this rank speaks \
             {VERSION} and accepts {OLDEST} or newer; install the same release everywhere"
        )
    })
}

/// What the first rank to come expects of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) version: u16,
    pub(crate) oldest: u16,
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    /// Whether its caller gave it a secret.
    pub(crate) given_secret: bool,
}

impl Opening {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(13);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.oldest.to_le_bytes());
        out.extend_from_slice(&self.rank.to_le_bytes());
        out.extend_from_slice(&self.ranks.to_le_bytes());
        out.push(u8::from(self.given_secret));
        out
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let opening = Self {
            version: reader.u16()?,
            oldest: reader.u16()?,
            rank: reader.u32()?,
            ranks: reader.u32()?,
            given_secret: match reader.u8()? {
                0 => false,
                1 => true,
                _ => return None,
            },
        };
        // A newer release may say more.
        (reader.rest().is_empty() || opening.version > VERSION).then_some(opening)
    }

    /// Why a rank that expects `self` cannot join one that came first and expects `first`.
    pub(crate) fn conflict(&self, first: &Self) -> Option<String> {
        if let Some(conflict) = version_conflict(first.version, first.oldest) {
            return Some(format!("rank {}: {conflict}", first.rank));
        }
        if self.ranks != first.ranks {
            return Some(format!(
                "rank {} was started for {} ranks, rank {} for {} ranks; start all with the same \
                 world size",
                self.rank, self.ranks, first.rank, first.ranks,
            ));
        }
        if self.given_secret != first.given_secret {
            let (with, without) =
                if self.given_secret { (self.rank, first.rank) } else { (first.rank, self.rank) };
            return Some(format!(
                "rank {with} was given a secret and rank {without} was not; give all ranks the \
                 same secret or none"
            ));
        }
        None
    }
}

/// What a rank publishes about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Info {
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    pub(crate) pid: u32,
    pub(crate) uid: u32,
    pub(crate) host: HostId,
    /// Random part of the name of its listening socket.
    pub(crate) socket: [u8; 16],
    pub(crate) nonce: Nonce,
    pub(crate) node: String,
    pub(crate) note: Vec<u8>,
    /// It wants all links to go over the network.
    pub(crate) everywhere: bool,
}

/// Why a published value is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InfoError {
    /// Torn, truncated or of another rank.
    Invalid(String),
    /// Of a release that this one cannot work with.
    Version(String),
    /// Made under another secret, or changed on the way.
    WrongProof,
}

/// A checked [`Info`] and the digest of the bytes it was published as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignedInfo {
    pub(crate) info: Info,
    pub(crate) digest: [u8; 32],
}

impl Info {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(MAX_INFO_BYTES);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&OLDEST.to_le_bytes());
        for number in [self.rank, self.ranks, self.pid, self.uid] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.host);
        out.extend_from_slice(&self.socket);
        out.extend_from_slice(&self.nonce);
        put_block(&mut out, self.node.as_bytes());
        put_block(&mut out, &self.note);
        out.push(u8::from(self.everywhere));
        out
    }

    /// The bytes to publish: the fields, then the proof of `secret`.
    pub(crate) fn sign(&self, name: &str, secret: &Secret) -> Vec<u8> {
        let mut out = self.encode();
        let tag = transcript(secret, name, &out).tag();
        out.extend_from_slice(&tag);
        out
    }

    fn parse(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            rank: reader.u32()?,
            ranks: reader.u32()?,
            pid: reader.u32()?,
            uid: reader.u32()?,
            host: reader.array()?,
            socket: reader.array()?,
            nonce: reader.array()?,
            node: printable(reader.block(MAX_NODE_BYTES)?, MAX_NODE_BYTES),
            note: reader.block(MAX_NOTE_BYTES)?.to_vec(),
            everywhere: match reader.u8()? {
                0 => false,
                1 => true,
                _ => return None,
            },
        })
    }
}

fn transcript(secret: &Secret, name: &str, fields: &[u8]) -> Transcript {
    Transcript::new(secret, LABEL).part(name.as_bytes()).part(fields)
}

impl SignedInfo {
    /// Check what `rank` of `ranks` published.
    pub(crate) fn parse(
        bytes: &[u8],
        name: &str,
        secret: &Secret,
        rank: u32,
        ranks: u32,
    ) -> Result<Self, InfoError> {
        let invalid = |detail: &str| InfoError::Invalid(detail.to_owned());
        let Some(split) = bytes.len().checked_sub(TAG_BYTES) else {
            return Err(InfoError::Invalid(format!("{} bytes are too few", bytes.len())));
        };
        let (fields, tag) = bytes.split_at(split);
        let mut reader = Reader::new(fields);
        let (Some(version), Some(oldest)) = (reader.u16(), reader.u16()) else {
            return Err(InfoError::Invalid(format!("{} bytes are too few", bytes.len())));
        };
        if let Some(conflict) = version_conflict(version, oldest) {
            return Err(InfoError::Version(conflict));
        }
        let info = Info::parse(&mut reader)
            .ok_or_else(|| invalid("a field is cut off or out of range"))?;
        if !reader.rest().is_empty() && version <= VERSION {
            return Err(invalid("bytes are left after the last field"));
        }
        if (info.rank, info.ranks) != (rank, ranks) {
            return Err(InfoError::Invalid(format!(
                "it says rank {} of {}, but stands for rank {rank} of {ranks}",
                info.rank, info.ranks,
            )));
        }
        let proven = tag.try_into().is_ok_and(|tag| transcript(secret, name, fields).verify(&tag));
        if !proven {
            return Err(InfoError::WrongProof);
        }
        Ok(Self { info, digest: digest(bytes) })
    }
}

/// All published values in one.
pub(crate) fn encode_table(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(entries.iter().map(|e| e.len() + 4).sum());
    for entry in entries {
        put_block(&mut out, entry);
    }
    out
}

/// The published values of exactly `ranks` ranks, not checked yet.
pub(crate) fn parse_table(bytes: &[u8], ranks: u32) -> Option<Vec<&[u8]>> {
    if ranks > MAX_RANKS {
        return None;
    }
    let mut reader = Reader::new(bytes);
    let entries = (0..ranks).map(|_| reader.block(MAX_INFO_BYTES)).collect::<Option<Vec<_>>>()?;
    reader.rest().is_empty().then_some(entries)
}

/// Node of each rank: hosts are numbered in the order in which their first rank comes.
pub(crate) fn nodes(infos: &[SignedInfo]) -> Vec<u32> {
    let mut numbers = std::collections::HashMap::new();
    infos
        .iter()
        .map(|signed| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            *numbers.entry(signed.info.host).or_insert(next)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn sample(rank: u32, ranks: u32, note: Vec<u8>) -> Info {
        Info {
            rank,
            ranks,
            pid: 77,
            uid: 1000,
            host: [rank as u8 / 2; 16],
            socket: [2; 16],
            nonce: [3; 32],
            node: "node-a".to_owned(),
            note,
            everywhere: rank == 1,
        }
    }

    fn secret() -> Secret {
        Secret::from_bytes([5; 32])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn an_info_comes_back(rank in 0u32..4096, note in prop::collection::vec(any::<u8>(), 0..99)) {
            let info = sample(rank, 4096, note);
            let bytes = info.sign("world.0", &secret());
            prop_assert!(bytes.len() <= MAX_INFO_BYTES);
            let back = SignedInfo::parse(&bytes, "world.0", &secret(), rank, 4096).unwrap();
            prop_assert_eq!(back.info, info);
            let elsewhere = SignedInfo::parse(&bytes, "world.1", &secret(), rank, 4096);
            prop_assert!(matches!(elsewhere, Err(InfoError::WrongProof)));
        }

        #[test]
        fn a_changed_or_cut_info_is_never_taken(at in 0usize..200, cut in any::<bool>(), flip in 1u8..=255) {
            let mut bytes = sample(1, 2, vec![8; 40]).sign("w", &secret());
            let at = at % bytes.len();
            if cut { bytes.truncate(at) } else { bytes[at] ^= flip }
            prop_assert!(SignedInfo::parse(&bytes, "w", &secret(), 1, 2).is_err());
        }

        #[test]
        fn garbage_is_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300), ranks in 0u32..6) {
            prop_assert!(SignedInfo::parse(&bytes, "w", &secret(), 0, 1).is_err());
            if let Some(entries) = parse_table(&bytes, ranks) {
                prop_assert_eq!(entries.len(), ranks as usize);
            }
            if let Some(opening) = Opening::parse(&bytes) {
                prop_assert_eq!(&opening.encode()[..], &bytes[..13]);
            }
        }

        #[test]
        fn a_table_comes_back(entries in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..9)) {
            let bytes = encode_table(&entries);
            let ranks = entries.len() as u32;
            let back: Vec<_> = parse_table(&bytes, ranks).unwrap().iter().map(|e| e.to_vec()).collect();
            prop_assert_eq!(back, entries);
            prop_assert_eq!(parse_table(&bytes, ranks + 1), None);
        }
    }

    #[test]
    fn oversized_lengths_are_refused_before_use() {
        let mut bytes = u32::MAX.to_le_bytes().to_vec();
        bytes.resize(64, 0);
        assert_eq!(parse_table(&bytes, 1), None);
        assert_eq!(parse_table(&[], u32::MAX), None);
    }

    #[test]
    fn conflicts_name_both_sides() {
        let one = Opening { version: 1, oldest: 1, rank: 0, ranks: 2, given_secret: false };
        assert_eq!(one.conflict(&one), None);
        let other = Opening { rank: 3, ranks: 4, ..one };
        let text = other.conflict(&one).unwrap();
        assert!(text.contains("rank 3 was started for 4 ranks, rank 0 for 2 ranks"), "{text}");
        let text = one.conflict(&Opening { rank: 1, given_secret: true, ..one }).unwrap();
        assert!(text.starts_with("rank 1 was given a secret and rank 0 was not"), "{text}");
        let text = one.conflict(&Opening { version: 9, oldest: 7, ..one }).unwrap();
        assert!(text.contains("version 9 and accepts 7"), "{text}");
        assert_eq!(one.conflict(&Opening { version: 9, oldest: 1, ..one }), None);
    }

    #[test]
    fn a_newer_release_may_say_more() {
        let mut bytes =
            Opening { version: 2, oldest: 1, rank: 0, ranks: 2, given_secret: true }.encode();
        bytes.push(9);
        assert!(Opening::parse(&bytes).is_some());
        bytes[0] = 1;
        assert_eq!(Opening::parse(&bytes), None);
    }

    #[test]
    fn nodes_are_numbered_as_they_come() {
        let signed = |host: u8| SignedInfo {
            info: Info { host: [host; 16], ..sample(0, 4, vec![]) },
            digest: [0; 32],
        };
        assert_eq!(nodes(&[9, 9, 4, 9, 1].map(signed)), [0, 0, 1, 0, 2]);
    }
}
