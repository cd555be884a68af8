//! Split copies against a byte-wise reference.

use driver_parts::parts::pieces::{Extents, Pieces};
use proptest::prelude::*;

/// Memory in extents of given lengths, each at an address of its own.
#[derive(Debug)]
struct Scattered(Vec<(u64, u64)>);

impl Scattered {
    fn new(lengths: &[u16], base: u64) -> Self {
        let place = |(index, length): (usize, &u16)| {
            (base + index as u64 * 0x10_0000, u64::from(*length) + 1)
        };
        Self(lengths.iter().enumerate().map(place).collect())
    }

    fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, length)| length).sum()
    }
}

impl Extents for Scattered {
    fn at(&self, mut offset: u64) -> (u64, u64) {
        for (address, length) in &self.0 {
            if offset < *length {
                return (address + offset, length - offset);
            }
            offset -= length;
        }
        (0, 0)
    }
}

proptest! {
    #[test]
    fn every_byte_moves_once(
        source in prop::collection::vec(0_u16..3000, 1..8),
        destination in prop::collection::vec(0_u16..3000, 1..8),
        starts: (u16, u16),
        longest in 1_u64..5000,
    ) {
        let source = Scattered::new(&source, 1 << 30);
        let destination = Scattered::new(&destination, 1 << 40);
        let from = u64::from(starts.0) % source.bytes();
        let to = u64::from(starts.1) % destination.bytes();
        let length = (source.bytes() - from).min(destination.bytes() - to);
        let mut moved = 0;
        let mut pieces = Pieces::new((&source, from), (&destination, to), length, longest);
        for piece in pieces.by_ref() {
            prop_assert!((1..=longest).contains(&piece.length));
            for byte in 0..piece.length {
                prop_assert_eq!(piece.from + byte, source.at(from + moved + byte).0);
                prop_assert_eq!(piece.to + byte, destination.at(to + moved + byte).0);
            }
            moved += piece.length;
        }
        prop_assert_eq!((moved, pieces.left()), (length, 0));
    }

    /// A range that leaves its memory ends, and does not go round for ever.
    #[test]
    fn a_range_that_leaves_ends(beyond in 1_u64..1000) {
        let memory = Scattered::new(&[99], 4096);
        let pieces = Pieces::new((&memory, 50), (&memory, 0), 50 + beyond, u64::MAX);
        prop_assert!(pieces.map(|piece| piece.length).sum::<u64>() <= 50);
    }
}
