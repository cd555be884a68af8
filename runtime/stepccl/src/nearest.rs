//! Which of some names a wrong one was meant to be.

/// The nearest of `names` in any case, and how many letters it takes to get there; the first of
/// several that are equally near in the order of names.
pub(crate) fn nearest(
    wrong: &str,
    names: impl Iterator<Item = &'static str>,
) -> Option<(usize, &'static str)> {
    let upper = wrong.to_ascii_uppercase();
    names.map(|name| (distance(&upper, &name.to_ascii_uppercase()), name)).min()
}

/// Letters to add, remove or replace to get from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.chars()) {
            let best = (diagonal + usize::from(x != y)).min(*cell + 1).min(left + 1);
            diagonal = *cell;
            *cell = best;
            left = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_letters() {
        for (a, b, edits) in [("", "ab", 2), ("ab", "", 2), ("kitten", "sitting", 3), ("a", "a", 0)]
        {
            assert_eq!(distance(a, b), edits, "{a} {b}");
        }
    }

    #[test]
    fn the_case_does_not_count() {
        let names = ["STEPCCL_LOG", "STEPCCL_TIMEOUT"];
        assert_eq!(nearest("stepccl_timeout", names.into_iter()), Some((0, "STEPCCL_TIMEOUT")));
        assert_eq!(nearest("STEPCCL_LOGS", names.into_iter()), Some((1, "STEPCCL_LOG")));
        assert_eq!(nearest("x", [].into_iter()), None);
    }
}
