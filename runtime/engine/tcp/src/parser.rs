//! Cuts a stream into frames and their payloads. Pure.

use crate::frame::{Frame, FrameError, HEADER_BYTES, Limits};

/// Where a stream is: in a header, or in a payload.
#[derive(Debug)]
pub(crate) struct Parser {
    limits: Limits,
    header: [u8; HEADER_BYTES],
    have: usize,
    left: u64,
}

/// What the next bytes are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// All bytes are used up.
    More,
    /// A frame; its payload comes next.
    Frame(Frame),
    /// Bytes of the payload of the last frame.
    Payload(&'a [u8]),
}

impl Parser {
    pub(crate) const fn new(limits: Limits) -> Self {
        Self { limits, header: [0; HEADER_BYTES], have: 0, left: 0 }
    }

    /// Bytes of payload still to come; they may be read past the parser, see [`Parser::took`].
    pub(crate) const fn payload_left(&self) -> u64 {
        self.left
    }

    /// So many bytes of payload were read past the parser.
    pub(crate) const fn took(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
    }

    /// Take the next piece off the front of `input`.
    ///
    /// # Errors
    ///
    /// What came is no frame; the stream is of no more use.
    pub(crate) fn step<'a>(&mut self, input: &mut &'a [u8]) -> Result<Step<'a>, FrameError> {
        if self.left > 0 && !input.is_empty() {
            let count = input.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
            let (payload, rest) = input.split_at(count);
            *input = rest;
            self.left -= count as u64;
            return Ok(Step::Payload(payload));
        }
        let (now, rest) = input.split_at(input.len().min(HEADER_BYTES - self.have));
        self.header[self.have..self.have + now.len()].copy_from_slice(now);
        self.have += now.len();
        *input = rest;
        if self.have < HEADER_BYTES {
            return Ok(Step::More);
        }
        self.have = 0;
        let frame = Frame::parse(&self.header, &self.limits)?;
        self.left = frame.payload_bytes();
        Ok(Step::Frame(frame))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame::tests::{LIMITS, frame};

    /// Frames and payload bytes of `stream`, fed in pieces of at most `piece`.
    fn cut(stream: &[u8], piece: usize) -> Result<Vec<(Frame, Vec<u8>)>, FrameError> {
        let mut parser = Parser::new(LIMITS);
        let mut found: Vec<(Frame, Vec<u8>)> = Vec::new();
        for mut piece in stream.chunks(piece) {
            loop {
                match parser.step(&mut piece)? {
                    Step::More => break,
                    Step::Frame(frame) => found.push((frame, Vec::new())),
                    Step::Payload(bytes) => found.last_mut().unwrap().1.extend(bytes),
                }
            }
            assert!(piece.is_empty());
        }
        Ok(found)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_stream_is_cut_the_same_however_it_arrives(
            frames in prop::collection::vec(frame(), 0..6),
            piece in prop_oneof![1usize..60, Just(1 << 14)],
        ) {
            let mut stream = Vec::new();
            let expected: Vec<_> = frames.into_iter().map(|frame| {
                let payload = vec![frame.payload_bytes() as u8; frame.payload_bytes() as usize];
                stream.extend(frame.encode());
                stream.extend(&payload);
                (frame, payload)
            }).collect();
            prop_assert!(cut(&stream, piece).unwrap() == expected);
        }

        #[test]
        fn garbage_never_panics(
            stream in prop::collection::vec(prop_oneof![Just(0u8), 0u8..11, any::<u8>()], 0..400),
            piece in 1usize..60,
        ) {
            let _ = cut(&stream, piece);
        }
    }

    #[test]
    fn a_payload_may_be_read_past_the_parser() {
        let mut parser = Parser::new(LIMITS);
        let data = Frame::Data { id: 1, bytes: 10 }.encode();
        assert_eq!(parser.step(&mut &data[..]), Ok(Step::Frame(Frame::Data { id: 1, bytes: 10 })));
        assert_eq!(parser.payload_left(), 10);
        parser.took(8);
        let mut rest = &[1, 2, 3][..];
        assert_eq!(parser.step(&mut rest), Ok(Step::Payload(&[1, 2])));
        assert_eq!(rest, [3]);
    }
}
