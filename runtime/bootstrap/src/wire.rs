//! Little-endian fields with a bound on every length.

/// Reads fields from bytes of an untrusted sender.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes not read yet.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `count` bytes, where there are so many.
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(head)
    }

    /// The next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        Some(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn i64(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.array()?))
    }

    /// A 32-bit length of at most `most`, then so many bytes.
    pub(crate) fn block(&mut self, most: usize) -> Option<&'a [u8]> {
        let count = usize::try_from(self.u32()?).ok()?;
        if count > most { None } else { self.bytes(count) }
    }
}

/// Append `bytes` after their 32-bit length. Callers have bounded the length before.
pub(crate) fn put_block(out: &mut Vec<u8>, bytes: &[u8]) {
    let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Text of another party made fit for a message: printable, at most `most` bytes.
pub(crate) fn printable(bytes: &[u8], most: usize) -> String {
    let mut text = String::new();
    for c in String::from_utf8_lossy(bytes).chars() {
        if text.len() + c.len_utf8() > most {
            break;
        }
        text.push(if c.is_control() { ' ' } else { c });
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_block_comes_back(bytes in prop::collection::vec(any::<u8>(), 0..64), more in 0..9usize) {
            let mut out = Vec::new();
            put_block(&mut out, &bytes);
            out.extend(std::iter::repeat_n(7, more));
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.block(64), Some(&bytes[..]));
            prop_assert_eq!(reader.rest().len(), more);
            if !bytes.is_empty() {
                prop_assert_eq!(Reader::new(&out).block(bytes.len() - 1), None);
            }
        }

        #[test]
        fn printable_text_is_bounded(bytes in prop::collection::vec(any::<u8>(), 0..200), most in 0..99usize) {
            let text = printable(&bytes, most);
            prop_assert!(text.len() <= most);
            prop_assert!(!text.chars().any(char::is_control));
        }
    }
}
