//! Whose contributions a piece of memory holds.

use std::fmt;
use std::rc::Rc;

/// A set of ranks as sorted ranges that do not touch; cheap to clone.
///
/// Plans combine neighbours, so a few ranges do where a bit for each rank would not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ranks(Rc<[(u32, u32)]>);

impl Ranks {
    pub fn one(rank: u32) -> Self {
        Self(Rc::new([(rank, rank + 1)]))
    }

    pub fn all(ranks: u32) -> Self {
        Self(Rc::new([(0, ranks)]))
    }

    /// The union of sets; none where they share a rank.
    pub fn union<'a>(sets: impl Iterator<Item = &'a Self>) -> Option<Self> {
        let mut ranges: Vec<(u32, u32)> = sets.flat_map(|set| set.0.iter().copied()).collect();
        ranges.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (start, end) in ranges {
            match joined.last_mut() {
                Some(last) if start < last.1 => return None,
                Some(last) if start == last.1 => last.1 = end,
                _ => joined.push((start, end)),
            }
        }
        Some(Self(joined.into()))
    }
}

impl fmt::Display for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (start, end)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            if end - start == 1 {
                write!(f, "{comma}{start}")?;
            } else {
                write!(f, "{comma}{start}..{}", end - 1)?;
            }
        }
        Ok(())
    }
}

/// What a piece of memory holds: a part of `block` of the inputs of `ranks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub block: u32,
    pub ranks: Ranks,
    /// A step marked as the last has made it, so that an average is divided.
    pub finished: bool,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let finished = if self.finished { ", finished" } else { "" };
        write!(f, "input[{}] of ranks {}{finished}", self.block, self.ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_union_joins_neighbours_and_refuses_repetition() {
        let (a, b, c) = (Ranks::one(3), Ranks::one(1), Ranks::one(2));
        let all = Ranks::union([&a, &b, &c].into_iter()).unwrap();
        assert_eq!(all.to_string(), "1..3");
        assert_eq!(
            Ranks::union([&all, &Ranks::one(5)].into_iter()).unwrap().to_string(),
            "1..3, 5"
        );
        assert_eq!(Ranks::union([&all, &c].into_iter()), None);
        assert_eq!(Ranks::union([&a, &b, &c, &Ranks::one(0)].into_iter()), Some(Ranks::all(4)));
    }
}
