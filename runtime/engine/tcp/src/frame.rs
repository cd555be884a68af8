//! Frames between two ranks. Pure: bytes in, checked values out.
//!
//! A frame is 24 bytes, little-endian: kind and id of 32 bits each, then two numbers of 64 bits.
//! Some have a payload behind them. Whatever comes from a peer is compared with the limits of this
//! rank before anything is done with it.

use stepccl_engine::{REASON_BYTES, RankState};

/// Bytes of a frame without its payload.
pub(crate) const HEADER_BYTES: usize = 24;
/// Most bytes of one payload, so that small frames are never long behind large ones.
pub(crate) const CHUNK_BYTES: u64 = 128 << 10;
/// Version of these frames.
pub(crate) const VERSION: u32 = 2;

/// What a peer must keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Flags of a rank; below 2^24.
    pub flags: u32,
    /// Bytes of a rank's staging.
    pub staging_bytes: u64,
    /// Bytes of data of a post on the board of collectives, where there is one.
    pub post_bytes: Option<u64>,
    /// The same on the board of a pair.
    pub pair_post_bytes: Option<u64>,
}

/// Bytes of the two words before the data of a post.
pub(crate) const WORD_BYTES: u64 = 16;

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// First of each side: who it is and what it was started with.
    Hello { version: u32, flags: u32, rank: u32, ranks: u32, staging_bytes: u64 },
    /// The sender's flag has this value.
    Flag { flag: u32, value: u64 },
    /// Post `number` on the board of collectives, or the one for this pair; payload: two words, then
    /// `bytes` bytes of data.
    Post { pair: bool, number: u64, bytes: u64 },
    /// Send so many bytes of your staging, as `Data` of the same id.
    Read { id: u32, offset: u64, bytes: u64 },
    /// The next bytes of an answer; payload.
    Data { id: u32, bytes: u64 },
    /// Put the payload into your staging, then acknowledge.
    Write { id: u32, offset: u64, bytes: u64 },
    /// So many bytes of a write are in the staging and visible.
    Ack { id: u32, bytes: u64 },
    /// Why the sender is about to say that it failed, once at most; payload: a
    /// [`Reason`](stepccl_engine::Reason), whose length is no field and so cannot be too large.
    Reason,
    /// What became of the sender.
    State(RankState),
    /// Bytes of the sender's staging, to be read when it is gone; payload.
    Will { offset: u64, bytes: u64 },
    /// The sender asks for nothing any more and waits for the answer before it closes.
    Bye,
    /// Answer to `Bye`: the sender will not ask the leaving side for anything any more.
    ByeHeard,
}

/// What came is no frame, or breaks a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a frame of unknown kind {0}")]
    Kind(u32),
    #[error("a frame of kind {0} with fields that it does not have")]
    Fields(u32),
    #[error("flag {flag}; there are {flags}")]
    Flag { flag: u32, flags: u32 },
    #[error("{bytes} bytes at {offset} of a staging of {staging_bytes} bytes")]
    Range { offset: u64, bytes: u64, staging_bytes: u64 },
    #[error("a post of {bytes} bytes; at most {limit} are possible")]
    Post { bytes: u64, limit: u64 },
    #[error("a payload of {0} bytes; 1 to {CHUNK_BYTES} are possible")]
    Payload(u64),
}

impl Frame {
    /// The bytes, without a payload.
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let (kind, id, first, second) = match *self {
            Self::Hello { version, flags, rank, ranks, staging_bytes } => {
                let ranks = u64::from(rank) << 32 | u64::from(ranks);
                (1, version << 24 | flags & 0xff_ffff, ranks, staging_bytes)
            }
            Self::Flag { flag, value } => (2, flag, value, 0),
            Self::Read { id, offset, bytes } => (3, id, offset, bytes),
            Self::Data { id, bytes } => (4, id, bytes, 0),
            Self::Write { id, offset, bytes } => (5, id, offset, bytes),
            Self::Ack { id, bytes } => (6, id, bytes, 0),
            Self::State(RankState::Running) => (7, 0, 0, 0),
            Self::State(RankState::Closed) => (7, 1, 0, 0),
            Self::State(RankState::Failed { culprit }) => (7, 2, u64::from(culprit), 0),
            Self::Will { offset, bytes } => (8, 0, offset, bytes),
            Self::Post { pair, number, bytes } => (11, u32::from(pair), number, bytes),
            Self::Bye => (9, 0, 0, 0),
            Self::ByeHeard => (10, 0, 0, 0),
            Self::Reason => (12, 0, 0, 0),
        };
        let mut out = [0; HEADER_BYTES];
        out[..4].copy_from_slice(&u32::to_le_bytes(kind));
        out[4..8].copy_from_slice(&u32::to_le_bytes(id));
        out[8..16].copy_from_slice(&u64::to_le_bytes(first));
        out[16..].copy_from_slice(&u64::to_le_bytes(second));
        out
    }

    /// The frame of these bytes, where it keeps to `limits`.
    ///
    /// # Errors
    ///
    /// [`FrameError`] names what it breaks.
    pub(crate) fn parse(bytes: &[u8; HEADER_BYTES], limits: &Limits) -> Result<Self, FrameError> {
        let (words, _) = bytes.as_chunks::<4>();
        let word = |at: usize| u32::from_le_bytes(words[at]);
        let long = |at: usize| u64::from(word(at + 1)) << 32 | u64::from(word(at));
        let (kind, id, first, second) = (word(0), word(1), long(2), long(4));
        let frame = match (kind, id, first, second) {
            (1, _, _, _) => Self::Hello {
                version: id >> 24,
                flags: id & 0xff_ffff,
                rank: (first >> 32) as u32,
                ranks: first as u32,
                staging_bytes: second,
            },
            (2, flag, value, 0) if flag < limits.flags => Self::Flag { flag, value },
            (2, flag, _, 0) => return Err(FrameError::Flag { flag, flags: limits.flags }),
            (3, _, offset, bytes) => Self::Read { id, offset, bytes: limits.range(offset, bytes)? },
            (4, _, bytes, 0) => Self::Data { id, bytes: payload(bytes)? },
            (5, _, offset, bytes) => {
                Self::Write { id, offset, bytes: payload(limits.range(offset, bytes)?)? }
            }
            (6, _, bytes, 0) => Self::Ack { id, bytes: payload(bytes)? },
            (7, 0, 0, 0) => Self::State(RankState::Running),
            (7, 1, 0, 0) => Self::State(RankState::Closed),
            (7, 2, culprit, 0) if culprit >> 32 == 0 => {
                Self::State(RankState::Failed { culprit: culprit as u32 })
            }
            (8, 0, offset, bytes) => {
                Self::Will { offset, bytes: payload(limits.range(offset, bytes)?)? }
            }
            (9, 0, 0, 0) => Self::Bye,
            (10, 0, 0, 0) => Self::ByeHeard,
            (11, 0 | 1, number, bytes) => {
                let limit = if id == 1 { limits.pair_post_bytes } else { limits.post_bytes };
                if limit.is_none_or(|limit| bytes > limit) {
                    return Err(FrameError::Post { bytes, limit: limit.unwrap_or(0) });
                }
                Self::Post { pair: id == 1, number, bytes }
            }
            (12, 0, 0, 0) => Self::Reason,
            (1..=12, ..) => return Err(FrameError::Fields(kind)),
            _ => return Err(FrameError::Kind(kind)),
        };
        Ok(frame)
    }

    /// Bytes that follow the frame.
    pub(crate) const fn payload_bytes(&self) -> u64 {
        match *self {
            Self::Data { bytes, .. } | Self::Write { bytes, .. } | Self::Will { bytes, .. } => {
                bytes
            }
            Self::Post { bytes, .. } => WORD_BYTES + bytes,
            Self::Reason => REASON_BYTES as u64,
            _ => 0,
        }
    }
}

impl Limits {
    /// `bytes`, where so many are at `offset` of the staging.
    fn range(&self, offset: u64, bytes: u64) -> Result<u64, FrameError> {
        let staging_bytes = self.staging_bytes;
        if bytes == 0 || bytes > staging_bytes || offset > staging_bytes - bytes {
            return Err(FrameError::Range { offset, bytes, staging_bytes });
        }
        Ok(bytes)
    }
}

const fn payload(bytes: u64) -> Result<u64, FrameError> {
    if bytes == 0 || bytes > CHUNK_BYTES { Err(FrameError::Payload(bytes)) } else { Ok(bytes) }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) const LIMITS: Limits = Limits {
        flags: 100,
        staging_bytes: 1 << 20,
        post_bytes: Some(4000),
        pair_post_bytes: Some(100),
    };

    fn state() -> impl Strategy<Value = RankState> {
        prop_oneof![
            Just(RankState::Running),
            Just(RankState::Closed),
            any::<u32>().prop_map(|culprit| RankState::Failed { culprit }),
        ]
    }

    /// Any frame within [`LIMITS`].
    pub(crate) fn frame() -> impl Strategy<Value = Frame> {
        let range = || (0..LIMITS.staging_bytes - CHUNK_BYTES, 1..=CHUNK_BYTES);
        prop_oneof![
            (any::<u8>(), 0u32..1 << 24, any::<u32>(), any::<u32>(), any::<u64>()).prop_map(
                |(version, flags, rank, ranks, staging_bytes)| Frame::Hello {
                    version: version.into(),
                    flags,
                    rank,
                    ranks,
                    staging_bytes
                }
            ),
            (0..LIMITS.flags, any::<u64>()).prop_map(|(flag, value)| Frame::Flag { flag, value }),
            (any::<u32>(), range()).prop_map(|(id, (offset, bytes))| Frame::Read {
                id,
                offset,
                bytes
            }),
            (any::<u32>(), 1..=CHUNK_BYTES).prop_map(|(id, bytes)| Frame::Data { id, bytes }),
            (any::<u32>(), range()).prop_map(|(id, (offset, bytes))| Frame::Write {
                id,
                offset,
                bytes
            }),
            (any::<u32>(), 1..=CHUNK_BYTES).prop_map(|(id, bytes)| Frame::Ack { id, bytes }),
            state().prop_map(Frame::State),
            range().prop_map(|(offset, bytes)| Frame::Will { offset, bytes }),
            (any::<u64>(), 0u64..=4000).prop_map(|(number, bytes)| Frame::Post {
                pair: false,
                number,
                bytes
            }),
            (any::<u64>(), 0u64..=100).prop_map(|(number, bytes)| Frame::Post {
                pair: true,
                number,
                bytes
            }),
            Just(Frame::Reason),
            Just(Frame::Bye),
            Just(Frame::ByeHeard),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn a_frame_comes_back(frame in frame()) {
            prop_assert_eq!(Frame::parse(&frame.encode(), &LIMITS), Ok(frame));
        }

        #[test]
        fn what_is_taken_keeps_to_the_limits(
            kind in 0u32..14,
            id in prop_oneof![0u32..120, any::<u32>()],
            first in prop_oneof![0u64..4, 0u64..2 << 20, any::<u64>()],
            second in prop_oneof![0u64..2, 0u64..2 << 20, any::<u64>()],
        ) {
            let mut bytes = [0; HEADER_BYTES];
            bytes[..4].copy_from_slice(&kind.to_le_bytes());
            bytes[4..8].copy_from_slice(&id.to_le_bytes());
            bytes[8..16].copy_from_slice(&first.to_le_bytes());
            bytes[16..].copy_from_slice(&second.to_le_bytes());
            let Ok(frame) = Frame::parse(&bytes, &LIMITS) else { return Ok(()) };
            prop_assert_eq!(frame.encode(), bytes, "a field was lost");
            prop_assert!(frame.payload_bytes() <= CHUNK_BYTES);
            if let Frame::Post { pair, bytes, .. } = frame {
                let most = if pair { 100 } else { 4000 };
                prop_assert!(bytes <= most);
            }
            match frame {
                Frame::Flag { flag, .. } => prop_assert!(flag < LIMITS.flags),
                Frame::Read { offset, bytes, .. }
                | Frame::Write { offset, bytes, .. }
                | Frame::Will { offset, bytes } => {
                    let end = u128::from(offset) + u128::from(bytes);
                    prop_assert!(bytes > 0 && end <= u128::from(LIMITS.staging_bytes));
                }
                Frame::Data { bytes, .. } | Frame::Ack { bytes, .. } => prop_assert!(bytes > 0),
                _ => {}
            }
        }
    }
}
