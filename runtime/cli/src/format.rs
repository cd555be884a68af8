//! Numbers as people read them.

/// Bytes with a binary unit: `4 MiB`, `1.5 GiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut unit = 0;
    let mut value = bytes as f64;
    // What would be rounded to 1024 has the next unit.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if value.fract() == 0.0 { 0 } else { 1 };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// A positive number in at most 8 characters where it is below 10^8: fewer digits behind the
/// point the larger it is, so that columns keep their width.
pub(crate) fn short(value: f64) -> String {
    match value {
        _ if value < 1e4 => format!("{value:.2}"),
        _ if value < 1e5 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_largest_unit_that_fits() {
        for (number, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (1_048_560, "1 MiB"),
            (4 << 20, "4 MiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(bytes(number).replace(".0 ", " "), text);
        }
    }

    #[test]
    fn large_times_stay_in_their_column() {
        for (number, text) in
            [(0.456, "0.46"), (9999.0, "9999.00"), (12345.67, "12345.7"), (1.5e7, "15000000")]
        {
            assert_eq!(short(number), text);
        }
    }
}
