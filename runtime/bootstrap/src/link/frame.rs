//! Frames of the handshake. Pure.
//!
//! A frame is a 32-bit length of what follows, one byte for the kind, and the fields.

use crate::auth::{Nonce, Tag};
use crate::wire::{Reader, printable};

/// Longest frame in bytes, without its length.
const MAX_FRAME_BYTES: usize = 1024;

/// Longest reason of a refusal in bytes.
const MAX_REASON_BYTES: usize = 512;

/// One message of the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The connecting side says who it is and whom it wants.
    Hello { version: u16, from: u32, to: u32, nonce: Nonce },
    /// The accepting side asks for the proof.
    Challenge { nonce: Nonce },
    /// Proof of the connecting side.
    Proof { tag: Tag },
    /// Proof of the accepting side; the link is made.
    Welcome { tag: Tag },
    /// The sender ends the handshake.
    Refuse { reason: String },
}

/// What came is no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a frame of {0} bytes; 1 to {MAX_FRAME_BYTES} are possible")]
    Length(u32),
    #[error("a frame of unknown kind {0}")]
    Kind(u8),
    #[error("a frame of kind {0} with wrong fields")]
    Fields(u8),
}

impl Frame {
    /// Append the frame with its length.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        match self {
            Self::Hello { version, from, to, nonce } => {
                out.push(1);
                out.extend_from_slice(&version.to_le_bytes());
                out.extend_from_slice(&from.to_le_bytes());
                out.extend_from_slice(&to.to_le_bytes());
                out.extend_from_slice(nonce);
            }
            Self::Challenge { nonce } => {
                out.push(2);
                out.extend_from_slice(nonce);
            }
            Self::Proof { tag } => {
                out.push(3);
                out.extend_from_slice(tag);
            }
            Self::Welcome { tag } => {
                out.push(4);
                out.extend_from_slice(tag);
            }
            Self::Refuse { reason } => {
                out.push(5);
                let text = printable(reason.as_bytes(), MAX_REASON_BYTES);
                out.extend_from_slice(text.as_bytes());
            }
        }
        // At most 1 + MAX_REASON_BYTES.
        let count = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&count.to_le_bytes());
    }

    /// The frame of the bytes after the length.
    fn parse(bytes: &[u8]) -> Result<Self, FrameError> {
        let mut reader = Reader::new(bytes);
        let kind = reader.u8().ok_or(FrameError::Length(0))?;
        if kind == 5 {
            return Ok(Self::Refuse { reason: printable(reader.rest(), MAX_REASON_BYTES) });
        }
        let frame = Self::fields(kind, &mut reader)?.ok_or(FrameError::Fields(kind))?;
        if reader.rest().is_empty() { Ok(frame) } else { Err(FrameError::Fields(kind)) }
    }

    fn fields(kind: u8, reader: &mut Reader<'_>) -> Result<Option<Self>, FrameError> {
        let mut hello = || {
            Some(Self::Hello {
                version: reader.u16()?,
                from: reader.u32()?,
                to: reader.u32()?,
                nonce: reader.array()?,
            })
        };
        Ok(match kind {
            1 => hello(),
            2 => reader.array().map(|nonce| Self::Challenge { nonce }),
            3 => reader.array().map(|tag| Self::Proof { tag }),
            4 => reader.array().map(|tag| Self::Welcome { tag }),
            other => return Err(FrameError::Kind(other)),
        })
    }
}

/// Collects the bytes of one frame, and never asks for a byte of what follows it: after the last
/// frame of a handshake the stream belongs to others.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    bytes: Vec<u8>,
}

impl FrameReader {
    /// How many bytes may be read next; never 0.
    ///
    /// # Errors
    ///
    /// [`FrameError::Length`].
    pub(crate) fn wanted(&self) -> Result<usize, FrameError> {
        let Some(length) = self.bytes.first_chunk::<4>() else { return Ok(4 - self.bytes.len()) };
        let length = u32::from_le_bytes(*length);
        if length == 0 || length as usize > MAX_FRAME_BYTES {
            return Err(FrameError::Length(length));
        }
        Ok(4 + length as usize - self.bytes.len())
    }

    /// Take what was read, at most [`FrameReader::wanted`] bytes, and return the frame if that
    /// makes it whole.
    ///
    /// # Errors
    ///
    /// What came is no frame.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Option<Frame>, FrameError> {
        let had_length = self.bytes.len() >= 4;
        let whole = had_length && self.wanted()? == bytes.len();
        self.bytes.extend_from_slice(bytes);
        if !whole {
            self.wanted()?;
            return Ok(None);
        }
        let frame = Frame::parse(&self.bytes[4..]);
        self.bytes.clear();
        frame.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame() -> impl Strategy<Value = Frame> {
        let bytes = any::<[u8; 32]>;
        prop_oneof![
            (any::<u16>(), any::<u32>(), any::<u32>(), bytes())
                .prop_map(|(version, from, to, nonce)| Frame::Hello { version, from, to, nonce }),
            bytes().prop_map(|nonce| Frame::Challenge { nonce }),
            bytes().prop_map(|tag| Frame::Proof { tag }),
            bytes().prop_map(|tag| Frame::Welcome { tag }),
            "[a-z ]{0,500}".prop_map(|reason| Frame::Refuse { reason }),
        ]
    }

    /// Feed `bytes` in pieces of at most `piece`, as a stream would.
    fn read(mut bytes: &[u8], piece: usize) -> Result<Vec<Frame>, FrameError> {
        let (mut reader, mut frames) = (FrameReader::default(), Vec::new());
        loop {
            let wanted = reader.wanted()?;
            assert!(wanted > 0 && wanted <= MAX_FRAME_BYTES);
            let (now, rest) = bytes.split_at(wanted.min(piece).min(bytes.len()));
            if now.is_empty() {
                return Ok(frames);
            }
            bytes = rest;
            frames.extend(reader.push(now)?);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn frames_come_back(frames in prop::collection::vec(frame(), 0..5), piece in 1usize..70) {
            let mut bytes = Vec::new();
            for frame in &frames { frame.encode(&mut bytes); }
            prop_assert_eq!(read(&bytes, piece).unwrap(), frames);
        }

        #[test]
        fn garbage_never_panics_or_grows(bytes in prop::collection::vec(any::<u8>(), 0..400), piece in 1usize..70) {
            let _ = read(&bytes, piece);
            let mut framed = (bytes.len() as u32).to_le_bytes().to_vec();
            framed.extend(&bytes);
            if let Ok(frames) = read(&framed, piece) {
                let mut back = Vec::new();
                for frame in &frames { frame.encode(&mut back); }
                if !matches!(frames.first(), Some(Frame::Refuse { .. })) && !bytes.is_empty() {
                    prop_assert_eq!(&back[..], &framed[..]);
                }
            }
        }
    }

    #[test]
    fn an_oversized_length_is_refused_at_once() {
        let mut reader = FrameReader::default();
        let error = reader.push(&u32::MAX.to_le_bytes()).unwrap_err();
        assert_eq!(error, FrameError::Length(u32::MAX));
        assert_eq!(read(&[0, 0, 0, 0], 4), Err(FrameError::Length(0)));
        assert_eq!(read(&[1, 0, 0, 0, 99], 9), Err(FrameError::Kind(99)));
        assert_eq!(read(&[2, 0, 0, 0, 2, 0], 9), Err(FrameError::Fields(2)));
    }
}
