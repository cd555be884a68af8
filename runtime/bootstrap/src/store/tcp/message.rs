//! What client and server say. Pure.

use super::frame::head;
use crate::auth::{Nonce, Tag, Transcript};
use crate::store::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use crate::wire::{Reader, printable, put_block};
use crate::{Secret, StoreError};

/// Version of what client and server say.
pub(super) const VERSION: u16 = 1;

/// Longest frame before both sides have proven the secret.
pub(super) const MAX_GREETING_BYTES: usize = 640;

/// Longest frame after it.
pub(super) const MAX_FRAME_BYTES: usize = MAX_KEY_BYTES + MAX_VALUE_BYTES + 64;

const MAGIC: &[u8; 8] = b"stepcclS";
const MAX_TEXT_BYTES: usize = 512;

/// First frame of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) version: u16,
    /// Whether the client must prove the secret.
    pub(super) secret: bool,
    pub(super) nonce: Nonce,
}

/// First frame of the client. Without a secret the tag is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) version: u16,
    pub(super) secret: bool,
    pub(super) nonce: Nonce,
    pub(super) tag: Tag,
}

/// Second frame of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Welcome { tag: Tag },
    Refuse { reason: String },
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Set {
        key: String,
        value: Vec<u8>,
    },
    /// Answer when the key is there, or that it is absent after `millis`.
    Get {
        key: String,
        millis: u32,
    },
    Add {
        key: String,
        n: i64,
    },
}

/// The answer to a command; a value is sent without a copy, so it is not here for the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Value(Vec<u8>),
    Absent,
    Sum(i64),
    Done,
    Counter(String),
    Refused(String),
}

/// First byte of a reply that carries a value.
pub(super) const VALUE: u8 = 1;

const CLIENT: &str = "stepccl store 1: client";
const SERVER: &str = "stepccl store 1: server";

/// Proof of the client, or zero without a secret.
pub(super) fn client_transcript(secret: &Secret, server: &Nonce, client: &Nonce) -> Transcript {
    Transcript::new(secret, CLIENT).part(server).part(client)
}

/// Proof of the server.
pub(super) fn server_transcript(secret: &Secret, server: &Nonce, client: &Nonce) -> Transcript {
    Transcript::new(secret, SERVER).part(server).part(client)
}

fn flag(byte: u8) -> Option<bool> {
    match byte {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

impl Greeting {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&self.version.to_le_bytes());
        out.push(u8::from(self.secret));
        out.extend_from_slice(&self.nonce);
        head(&out, 0)
    }

    /// A newer server may say more.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.bytes(MAGIC.len())? != MAGIC {
            return None;
        }
        Some(Self { version: reader.u16()?, secret: flag(reader.u8()?)?, nonce: reader.array()? })
    }
}

impl Hello {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = self.version.to_le_bytes().to_vec();
        out.push(u8::from(self.secret));
        out.extend_from_slice(&self.nonce);
        out.extend_from_slice(&self.tag);
        head(&out, 0)
    }

    /// A newer client may say more.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        Some(Self {
            version: reader.u16()?,
            secret: flag(reader.u8()?)?,
            nonce: reader.array()?,
            tag: reader.array()?,
        })
    }
}

impl Answer {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Welcome { tag } => {
                out.push(0);
                out.extend_from_slice(tag);
            }
            Self::Refuse { reason } => {
                out.push(1);
                out.extend_from_slice(printable(reason.as_bytes(), MAX_TEXT_BYTES).as_bytes());
            }
        }
        head(&out, 0)
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        match reader.u8()? {
            0 => {
                let tag = reader.array()?;
                reader.rest().is_empty().then_some(Self::Welcome { tag })
            }
            1 => Some(Self::Refuse { reason: printable(reader.rest(), MAX_TEXT_BYTES) }),
            _ => None,
        }
    }
}

impl Request {
    /// The frame; the value of a `Set` is copied.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Set { key, value } => {
                out.push(1);
                put_block(&mut out, key.as_bytes());
                out.extend_from_slice(value);
            }
            Self::Get { key, millis } => {
                out.push(2);
                put_block(&mut out, key.as_bytes());
                out.extend_from_slice(&millis.to_le_bytes());
            }
            Self::Add { key, n } => {
                out.push(3);
                put_block(&mut out, key.as_bytes());
                out.extend_from_slice(&n.to_le_bytes());
            }
        }
        head(&out, 0)
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let kind = reader.u8()?;
        let key = std::str::from_utf8(reader.block(MAX_KEY_BYTES)?).ok()?.to_owned();
        if key.is_empty() {
            return None;
        }
        if kind == 1 {
            let value = reader.rest();
            return (value.len() <= MAX_VALUE_BYTES)
                .then(|| Self::Set { key, value: value.to_vec() });
        }
        let request = match kind {
            2 => Self::Get { key, millis: reader.u32()? },
            3 => Self::Add { key, n: reader.i64()? },
            _ => return None,
        };
        reader.rest().is_empty().then_some(request)
    }
}

impl Reply {
    /// The reply for an error of a command.
    pub(super) fn of_error(error: StoreError) -> Self {
        match error {
            StoreError::Counter { detail, .. } => Self::Counter(detail),
            other => Self::Refused(other.to_string()),
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Value(value) => {
                out.push(VALUE);
                out.extend_from_slice(value);
            }
            Self::Absent => out.push(2),
            Self::Sum(sum) => {
                out.push(3);
                out.extend_from_slice(&sum.to_le_bytes());
            }
            Self::Done => out.push(4),
            Self::Counter(text) => {
                out.push(5);
                out.extend_from_slice(printable(text.as_bytes(), MAX_TEXT_BYTES).as_bytes());
            }
            Self::Refused(text) => {
                out.push(6);
                out.extend_from_slice(printable(text.as_bytes(), MAX_TEXT_BYTES).as_bytes());
            }
        }
        head(&out, 0)
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let reply = match reader.u8()? {
            VALUE => return Some(Self::Value(reader.rest().to_vec())),
            5 => return Some(Self::Counter(printable(reader.rest(), MAX_TEXT_BYTES))),
            6 => return Some(Self::Refused(printable(reader.rest(), MAX_TEXT_BYTES))),
            2 => Self::Absent,
            3 => Self::Sum(reader.i64()?),
            4 => Self::Done,
            _ => return None,
        };
        reader.rest().is_empty().then_some(reply)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn requests_and_replies_come_back(
            key in ".{1,40}", value in prop::collection::vec(any::<u8>(), 0..40),
            n in any::<i64>(), millis in any::<u32>(),
        ) {
            for request in [
                Request::Set { key: key.clone(), value: value.clone() },
                Request::Get { key: key.clone(), millis },
                Request::Add { key, n },
            ] {
                prop_assert_eq!(Request::parse(&request.encode()[4..]), Some(request));
            }
            for reply in [Reply::Value(value), Reply::Absent, Reply::Sum(n), Reply::Done] {
                prop_assert_eq!(Reply::parse(&reply.encode()[4..]), Some(reply));
            }
        }

        #[test]
        fn garbage_is_parsed_or_refused_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            if let Some(request) = Request::parse(&bytes) {
                prop_assert_eq!(&request.encode()[4..], &bytes[..]);
            }
            let _ = (Reply::parse(&bytes), Answer::parse(&bytes), Hello::parse(&bytes));
            let _ = Greeting::parse(&bytes);
        }
    }

    #[test]
    fn the_opening_comes_back_and_is_small() {
        let greeting = Greeting { version: 1, secret: true, nonce: [4; 32] };
        assert_eq!(Greeting::parse(&greeting.encode()[4..]), Some(greeting));
        let hello = Hello { version: 1, secret: false, nonce: [4; 32], tag: [5; 32] };
        assert_eq!(Hello::parse(&hello.encode()[4..]), Some(hello));
        let refuse = Answer::Refuse { reason: "x".repeat(600) };
        assert!(refuse.encode().len() < MAX_GREETING_BYTES);
        let welcome = Answer::Welcome { tag: [1; 32] };
        assert_eq!(Answer::parse(&welcome.encode()[4..]), Some(welcome));
        assert_eq!(Greeting::parse(b"HTTP/1.1 200 OK and so on and so on and so on"), None);
    }
}
