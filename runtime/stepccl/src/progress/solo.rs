//! Operations that have a thread to themselves: which of them have not ended yet.

use crate::task::Member;

/// Most operations of which this is noted.
pub(crate) const FEW: usize = 16;

/// Places of those that are left, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left(u16);

impl Left {
    /// All of `members`, [`FEW`] at most.
    pub fn all(members: &[Member]) -> Self {
        debug_assert!(members.len() <= FEW, "{}", members.len());
        Self(((1u32 << members.len().min(FEW)) - 1) as u16)
    }

    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// How many.
    pub const fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    pub const fn has(self, place: usize) -> bool {
        place < FEW && self.0 >> place & 1 != 0
    }

    pub fn remove(&mut self, place: usize) {
        self.0 &= !(1 << place);
    }

    /// Their places, in order.
    pub fn places(self) -> impl Iterator<Item = usize> {
        let mut bits = self.0;
        std::iter::from_fn(move || {
            let place = (bits != 0).then_some(bits.trailing_zeros() as usize)?;
            bits &= bits - 1;
            Some(place)
        })
    }

    /// Those of `members` that are left.
    pub fn of_mut(self, members: &mut [Member]) -> impl Iterator<Item = &mut Member> {
        members
            .iter_mut()
            .enumerate()
            .filter_map(move |(at, member)| self.has(at).then_some(member))
    }
}

/// Operations that have the thread to themselves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Solo<'a> {
    pub members: &'a [Member],
    pub left: Left,
}

impl<'a> Solo<'a> {
    pub const NONE: Self = Self { members: &[], left: Left(0) };

    pub fn iter(self) -> impl Iterator<Item = &'a Member> {
        self.left.places().filter_map(|place| self.members.get(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_not_removed() {
        let mut left = Left(0b1011);
        assert_eq!(left.places().collect::<Vec<_>>(), [0, 1, 3]);
        left.remove(1);
        assert_eq!((left.count(), left.has(1), left.has(3), left.has(99)), (2, false, true, false));
        left.remove(0);
        left.remove(3);
        assert!(left.is_none());
        assert_eq!(Left::all(&[]), Left(0));
        assert_eq!(Left(u16::MAX).places().count(), FEW);
    }
}
