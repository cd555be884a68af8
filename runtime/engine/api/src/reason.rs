//! Why a rank failed, in its own words: short, of one line, and not trusted by who reads it.

/// Why a rank failed, as it is told to its peers: text cut to [`REASON_BYTES`], filled up with zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason([u8; REASON_BYTES]);

/// Bytes of a [`Reason`], whatever it says.
pub const REASON_BYTES: usize = 120;

impl Reason {
    /// The start of `text`, as much of it as there is room for.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let end = text.floor_char_boundary(REASON_BYTES);
        let mut bytes = [0; REASON_BYTES];
        bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        Self(bytes)
    }

    /// What a peer says; it may be anything.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; REASON_BYTES]) -> Self {
        Self(bytes)
    }

    /// What a peer is told.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; REASON_BYTES] {
        &self.0
    }

    /// The words, fit for a log: characters that would break a line or steer a terminal are blanks,
    /// and what is no UTF-8 is marked. None where nothing is said.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.0);
        let text = text.trim_end_matches('\0');
        let text: String = text.chars().map(|c| if breaks_a_line(c) { ' ' } else { c }).collect();
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}

/// Control characters, the line ends of Unicode, and what turns the direction of a text round.
fn breaks_a_line(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(bytes: &[u8]) -> Option<String> {
        let mut all = [0; REASON_BYTES];
        all[..bytes.len()].copy_from_slice(bytes);
        Reason::from_bytes(all).text()
    }

    #[test]
    fn words_come_back() {
        for text in ["enough", "größer als erwartet", &"x".repeat(REASON_BYTES)] {
            assert_eq!(Reason::new(text).text().as_deref(), Some(text));
        }
    }

    #[test]
    fn long_words_are_cut_between_characters() {
        // 2 bytes each, so that the end falls into one.
        let text = format!("x{}", "ö".repeat(REASON_BYTES));
        let cut = Reason::new(&text).text().unwrap();
        assert_eq!(cut.len(), REASON_BYTES - 1);
        assert!(text.starts_with(&cut));
    }

    #[test]
    fn nothing_said_is_no_reason() {
        assert_eq!(Reason::new("").text(), None);
        assert_eq!(Reason::new(" \n\0").text(), None);
    }

    #[test]
    fn hostile_bytes_are_one_line_of_text() {
        assert_eq!(said(b"a\x1b[31m\r\nb\0c").as_deref(), Some("a [31m  b c"));
        assert_eq!(said(b"\xff\xfe").as_deref(), Some("\u{fffd}\u{fffd}"));
        assert_eq!(said("a\u{202e}b\u{2028}c".as_bytes()).as_deref(), Some("a b c"));
        // A lead byte whose character would lie past the end.
        let mut all = [b'x'; REASON_BYTES];
        all[REASON_BYTES - 1] = 0xc3;
        let text = Reason::from_bytes(all).text().unwrap();
        assert!(text.ends_with("x\u{fffd}") && text.len() == REASON_BYTES + 2, "{text}");
    }
}
