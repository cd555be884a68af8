//! The roster of a channel against a plain model.

use std::collections::BTreeMap;

use driver_parts::parts::roster::{Place, Roster};
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_roster_is_a_map(size in 1_u32..12, steps in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut places: Vec<Place<usize>> = (0..size).map(Roster::place).collect();
        let mut roster = Roster::new();
        let mut model = BTreeMap::new();
        for (who, step) in steps.into_iter().enumerate() {
            let place = u32::from(step) % (size + 2);
            match step % 4 {
                0 | 1 => match roster.board(&mut places, who) {
                    Some(place) => prop_assert_eq!(model.insert(place, who), None),
                    None => prop_assert_eq!(model.len(), size as usize),
                },
                2 => prop_assert_eq!(roster.leave(&mut places, place), model.remove(&place)),
                _ => match roster.leave_any(&mut places) {
                    Some(found) => {
                        let place = *model.iter().find(|(_, known)| **known == found).unwrap().0;
                        model.remove(&place);
                    }
                    None => prop_assert!(model.is_empty()),
                },
            }
        }
    }
}
