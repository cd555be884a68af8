//! Sizes in bytes, as people write them.

use crate::Error;

/// Bytes from `8388608`, `8MiB` (1024-based) or `8MB` (1000-based); also `8M` as nccl-tests
/// writes it, which is 1024-based.
///
/// # Errors
///
/// [`Error::InvalidArgument`] with `name` and the possible forms.
pub fn parse_size(name: &'static str, text: &str) -> Result<usize, Error> {
    let wrong = || {
        Error::invalid(
            name,
            text,
            "must be bytes as a whole number, or with KB, MB, GB, KiB, MiB, GiB (8MiB)",
        )
    };
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: usize = number.parse().map_err(|_| wrong())?;
    let factor: usize = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(factor).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_what_they_say() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("8K", 8192),
            ("8KB", 8000),
            ("8 KiB", 8192),
            ("256M", 256 << 20),
            ("1g", 1 << 30),
        ] {
            assert_eq!(parse_size("x", text).unwrap(), bytes, "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in
            ["", "MB", "-1", "1.5M", "8 XB", "99999999999999999999", "18446744073709551615K"]
        {
            assert!(parse_size("x", text).is_err(), "{text}");
        }
    }
}
