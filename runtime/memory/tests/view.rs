//! Views against a model: a range is given exactly where all of it is there.

use proptest::prelude::*;
use stepccl_memory::{MemoryError, Segment};

const BYTES: usize = 8192;

fn offsets() -> impl Strategy<Value = usize> {
    prop_oneof![0..2 * BYTES, BYTES - 16..BYTES + 16, usize::MAX - 16..=usize::MAX]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 512 }))]

    #[test]
    fn ranges_end_where_the_memory_does(offset in offsets(), bytes in offsets()) {
        let segment = Segment::create("view", BYTES).unwrap();
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= BYTES);
        match segment.view().range(offset, bytes) {
            Ok(start) => {
                prop_assert!(inside);
                prop_assert_eq!(start.addr(), segment.base().addr() + offset);
            }
            Err(error) => {
                prop_assert!(!inside);
                prop_assert_eq!(error, MemoryError::OutOfBounds { offset, bytes, limit: BYTES });
            }
        }
    }

    #[test]
    fn words_are_inside_and_aligned(offset in offsets()) {
        let segment = Segment::create("view", BYTES).unwrap();
        let view = segment.view();
        for (size, ok) in [
            (4, view.read_u32(offset).is_ok()),
            (4, view.write_u32(offset, 1).is_ok()),
            (4, view.atomic_u32(offset).is_ok()),
            (8, view.read_u64(offset).is_ok()),
            (8, view.write_u64(offset, 1).is_ok()),
            (8, view.atomic_u64(offset).is_ok()),
        ] {
            let inside = offset.checked_add(size).is_some_and(|end| end <= BYTES);
            prop_assert_eq!(ok, inside && offset % size == 0);
        }
    }

    #[test]
    fn copies_move_exactly_their_bytes(
        offset in 0..BYTES + 8,
        from in prop::collection::vec(1u8.., 0..300),
    ) {
        let segment = Segment::create("view", BYTES).unwrap();
        let copied = segment.view().copy_in(offset, &from);
        prop_assert_eq!(copied.is_ok(), offset + from.len() <= BYTES);
        let mut all = vec![0; BYTES];
        segment.view().copy_out(0, &mut all).unwrap();
        let written = if copied.is_ok() { offset..offset + from.len() } else { 0..0 };
        prop_assert_eq!(&all[written.clone()], if copied.is_ok() { &from[..] } else { &[] });
        prop_assert!(all.iter().enumerate().all(|(at, byte)| written.contains(&at) || *byte == 0));
    }
}

#[test]
fn a_part_is_bounded_by_itself() {
    let segment = Segment::create("part", BYTES).unwrap();
    let part = segment.view().part(4096, 64).unwrap();
    part.write_u64(56, 9).unwrap();
    assert_eq!(segment.view().read_u64(4096 + 56), Ok(9));
    assert!(part.read_u64(64).is_err());
    assert!(part.part(1, 64).is_err());
    // A part at an odd place has words where the address is aligned, not where the offset is.
    let odd = segment.view().part(4, 64).unwrap();
    assert_eq!(odd.read_u64(0), Err(MemoryError::Misaligned { offset: 0, align: 8 }));
    assert!(odd.read_u64(4).is_ok());
}

#[test]
fn a_refused_copy_leaves_the_target() {
    let segment = Segment::create("copy", 64).unwrap();
    let mut to = [5; 8];
    assert!(segment.view().copy_out(60, &mut to).is_err());
    assert_eq!(to, [5; 8]);
}
