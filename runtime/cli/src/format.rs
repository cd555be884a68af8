//! Numbers as people read them.

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
    fn large_times_stay_in_their_column() {
        for (number, text) in
            [(0.456, "0.46"), (9999.0, "9999.00"), (12345.67, "12345.7"), (1.5e7, "15000000")]
        {
            assert_eq!(short(number), text);
        }
    }
}
