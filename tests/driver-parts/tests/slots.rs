//! Region ids against a plain model.

use std::collections::{HashMap, VecDeque};

use driver_parts::abi::address::{generation_of, slot_of};
use driver_parts::parts::slots::{Free, MAX_SLOTS, Slot, find};
use proptest::prelude::*;

#[test]
fn an_id_comes_back_after_1023_uses_of_its_slot() {
    let (mut slots, mut free) = ([Slot::new(); 1], Free::new());
    free.put(&mut slots, 0);
    let first = free.take(&mut slots).unwrap();
    assert_eq!((slot_of(first), generation_of(first)), (0, 1));
    let mut id = first;
    for use_number in 1..=1023 {
        assert_eq!(free.end(&mut slots, id), Some(0));
        assert_eq!(free.end(&mut slots, id), None, "twice");
        assert_eq!(find(&slots, id), None);
        id = free.take(&mut slots).unwrap();
        assert_ne!(id, 0);
        assert_eq!(id == first, use_number == 1023, "use {use_number}");
    }
    assert_eq!(free.take(&mut slots), None);
}

#[test]
fn ids_that_never_were_name_nothing() {
    let (mut slots, mut free) = ([Slot::new(); 4], Free::new());
    for slot in 0..4 {
        free.put(&mut slots, slot);
    }
    let id = free.take(&mut slots).unwrap();
    for other in [0, 1, id + 1, id ^ 1 << 14, MAX_SLOTS - 1, u32::MAX, id | 1 << 24] {
        let names = find(&slots, other).is_some();
        // The upper byte is no part of an id; whoever takes ids from addresses never has one.
        assert_eq!(names, other & 0xff_ffff == id, "{other:#x}");
    }
}

proptest! {
    #[test]
    fn slots_are_a_queue(size in 1_u32..20, steps in prop::collection::vec(any::<u16>(), 0..400)) {
        let mut slots = vec![Slot::new(); size as usize];
        let mut free = Free::new();
        let mut model: VecDeque<u32> = (0..size).collect();
        for slot in 0..size {
            free.put(&mut slots, slot);
        }
        let mut used = HashMap::new();
        let mut ended = Vec::new();
        for step in steps {
            if step % 2 == 0 {
                let id = free.take(&mut slots);
                prop_assert_eq!(id.map(slot_of), model.pop_front());
                if let Some(id) = id {
                    prop_assert_eq!(used.insert(id, slot_of(id)), None);
                    prop_assert_eq!(find(&slots, id), Some(slot_of(id)));
                }
            } else if let Some(id) = used.keys().nth(step as usize % used.len().max(1)).copied() {
                let slot = used.remove(&id).unwrap();
                prop_assert_eq!(free.end(&mut slots, id), Some(slot));
                model.push_back(slot);
                ended.push(id);
            }
            prop_assert_eq!(free.count() as usize, model.len());
            for id in ended.iter().filter(|id| !used.contains_key(id)) {
                prop_assert_eq!(find(&slots, *id), None);
            }
        }
    }
}
