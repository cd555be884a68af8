//! Text that another process wrote: never to be trusted on a terminal.

/// The characters before the first zero; what is not UTF-8 or would change a terminal is replaced.
pub(crate) fn clean(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end])
        .chars()
        .map(|c| if is_harmful(c) { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}

/// Control characters, and those that turn the direction of what stands beside them.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_that_changes_a_terminal_is_left() {
        assert_eq!(clean(b"world.0\0junk"), "world.0");
        assert_eq!(clean(b"a\x1b[2Jb\r\n"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}");
        assert_eq!(clean("a\u{202e}b".as_bytes()), "a\u{fffd}b");
        assert_eq!(clean(b"\xff"), "\u{fffd}");
    }

    proptest! {
        #[test]
        fn any_bytes_become_text_without_control(bytes: Vec<u8>) {
            prop_assert!(!clean(&bytes).chars().any(is_harmful));
        }
    }
}
