//! Bytes of a stream to frames: a 32-bit length and so many bytes. Pure.

/// Collects frames from a stream, none longer than a limit.
#[derive(Debug, Default)]
pub(super) struct FrameBuffer {
    bytes: Vec<u8>,
}

/// A frame longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {bytes} bytes; at most {most} are possible here")]
pub(super) struct TooLong {
    bytes: u32,
    most: usize,
}

impl FrameBuffer {
    /// Bytes held.
    pub(super) const fn held(&self) -> usize {
        self.bytes.len()
    }

    /// How many bytes to read next, at least 1 where no frame is whole: never past the frame.
    ///
    /// # Errors
    ///
    /// [`TooLong`] where the frame is longer than `most`.
    pub(super) fn wanted(&self, most: usize) -> Result<usize, TooLong> {
        let Some(length) = self.bytes.first_chunk::<4>() else { return Ok(4 - self.bytes.len()) };
        let bytes = u32::from_le_bytes(*length);
        if bytes as usize > most {
            return Err(TooLong { bytes, most });
        }
        Ok((4 + bytes as usize).saturating_sub(self.bytes.len()))
    }

    /// Take what was read.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The frame, once it is whole.
    ///
    /// # Errors
    ///
    /// [`TooLong`] where it is longer than `most`.
    pub(super) fn take(&mut self, most: usize) -> Result<Option<Vec<u8>>, TooLong> {
        if self.bytes.len() < 4 || self.wanted(most)? > 0 {
            return Ok(None);
        }
        let mut frame = std::mem::take(&mut self.bytes);
        frame.drain(..4);
        Ok(Some(frame))
    }
}

/// Begin a frame that ends with `body_bytes` bytes which are sent apart.
pub(super) fn head(fields: &[u8], body_bytes: usize) -> Vec<u8> {
    let bytes = u32::try_from(fields.len() + body_bytes).unwrap_or(u32::MAX);
    let mut out = bytes.to_le_bytes().to_vec();
    out.extend_from_slice(fields);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn frames_come_back_in_any_pieces(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..5),
            piece in 1usize..50,
        ) {
            let mut stream: Vec<u8> = frames.iter().flat_map(|frame| head(frame, 0)).collect();
            let (mut buffer, mut back) = (FrameBuffer::default(), Vec::new());
            while !stream.is_empty() {
                let count = buffer.wanted(40).unwrap().min(piece).min(stream.len());
                prop_assert!(count > 0);
                buffer.push(&stream.drain(..count).collect::<Vec<_>>());
                back.extend(buffer.take(40).unwrap());
            }
            prop_assert_eq!(back, frames);
        }

        #[test]
        fn garbage_never_grows_past_the_limit(mut stream in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut buffer = FrameBuffer::default();
            while let Ok(wanted) = buffer.wanted(64) {
                let count = wanted.min(stream.len());
                if count == 0 { break; }
                buffer.push(&stream.drain(..count).collect::<Vec<_>>());
                prop_assert!(buffer.held() <= 68);
                let _ = buffer.take(64);
            }
        }
    }

    #[test]
    fn a_long_frame_is_refused_by_its_length() {
        let mut buffer = FrameBuffer::default();
        buffer.push(&100u32.to_le_bytes());
        assert_eq!(buffer.wanted(99), Err(TooLong { bytes: 100, most: 99 }));
        assert!(buffer.take(99).is_err());
        assert_eq!(buffer.wanted(100), Ok(100));
    }
}
