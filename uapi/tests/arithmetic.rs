//! Addresses, indices and the static rules, over all their range.

use std::mem::offset_of;

use dma_engine_uapi::abi::address::{
    MAX_REGION_BYTES, address, generation_of, in_region, next_generation, offset_of as offset,
    overlap, region_id, region_of, slot_of,
};
use dma_engine_uapi::abi::ring::{distance, head_may_move, slot};
use dma_engine_uapi::abi::{
    CompletionEntry, Descriptor, EntryRule, RingOffsets, SubmissionEntry, descriptor, submission,
    version::compatible,
};
use proptest::prelude::*;

const NODE: u16 = 7;

fn copy() -> SubmissionEntry {
    SubmissionEntry {
        desc: Descriptor {
            src_addr: address(1, 0).unwrap(),
            dst_addr: address(2, 0).unwrap(),
            length: 4096,
            src_node: NODE,
            dst_node: NODE,
            opcode: descriptor::opcode::READ,
            ..Descriptor::default()
        },
        user_data: 9,
        ..SubmissionEntry::default()
    }
}

fn bytes<const WORDS: usize>(words: [u64; WORDS]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn an_address_keeps_its_parts(region in 1_u32..1 << 24, at in 0..MAX_REGION_BYTES) {
        let raw = address(region, at).unwrap();
        prop_assert_eq!((region_of(raw), offset(raw)), (region, at));
        prop_assert_eq!(address(region, at + MAX_REGION_BYTES), None);
        prop_assert_eq!(address(region + (1 << 24), at), None);
    }

    #[test]
    fn a_region_id_keeps_its_parts(slot in 0_u32..1 << 14, generation in 1_u32..1 << 10) {
        let id = region_id(slot, generation).unwrap();
        prop_assert!(id != 0 && id >> 24 == 0);
        prop_assert_eq!((slot_of(id), generation_of(id)), (slot, generation));
        prop_assert!(region_id(slot, next_generation(generation)).unwrap() != id);
    }

    #[test]
    fn ranges_agree_with_wide_arithmetic(at: u64, length: u64, bytes in 0..=MAX_REGION_BYTES) {
        let inside = u128::from(at) + u128::from(length) <= u128::from(bytes);
        prop_assert_eq!(in_region(at, length, bytes), inside);
    }

    #[test]
    fn overlap_agrees_with_a_common_byte(a in 0_u64..64, b in 0_u64..64, length in 1_u64..40) {
        let common = (a..a + length).any(|byte| (b..b + length).contains(&byte));
        let base = address(3, 0).unwrap();
        prop_assert_eq!(overlap(base + a, base + b, length), common);
        prop_assert!(!overlap(base + a, address(4, b).unwrap(), length));
    }

    #[test]
    fn a_distance_is_believed_only_where_it_fits(head: u32, tail: u32, log in 0_u32..16) {
        let entries = 1 << log;
        let wide = (i64::from(tail) - i64::from(head)).rem_euclid(1 << 32);
        let expected = u32::try_from(wide).ok().filter(|count| *count <= entries);
        prop_assert_eq!(distance(head, tail, entries), expected);
        prop_assert!(slot(head, entries) < entries);
        prop_assert_eq!(slot(head, entries), slot(head.wrapping_add(entries), entries));
    }

    #[test]
    fn a_head_moves_forward_to_the_tail_at_most(old: u32, queued in 0_u32..4096, step: u32) {
        let tail = old.wrapping_add(queued);
        prop_assert_eq!(head_may_move(old, old.wrapping_add(step), tail), step <= queued);
    }

    #[test]
    fn words_are_the_bytes_of_the_struct(words: [u64; 8]) {
        prop_assert_eq!(SubmissionEntry::from_words(words).to_words(), words);
        let two = [words[0], words[1]];
        prop_assert_eq!(CompletionEntry::from_words(two).to_words(), two);
    }

    #[test]
    fn check_never_panics_and_refuses_what_is_unknown(words: [u64; 8], node: u16) {
        let entry = SubmissionEntry::from_words(words);
        if entry.check(node).is_ok() {
            prop_assert!((1..=5).contains(&entry.desc.opcode));
            prop_assert_eq!(entry.reserved, 0);
            prop_assert_eq!(entry.desc.reserved, [0; 6]);
            prop_assert_eq!(entry.flags & !submission::flags::ALL, 0);
        }
    }

    #[test]
    fn an_outcome_is_bytes_or_an_errno(bytes: u32, errno in 1..4096_i32) {
        prop_assert_eq!(CompletionEntry::moved(1, bytes).outcome(), Ok(bytes));
        prop_assert_eq!(CompletionEntry::failed(1, errno).outcome(), Err(errno));
    }

    #[test]
    fn a_layout_has_everything_apart(sq in 0_u32..20, cq in 0_u32..20) {
        let (sq, cq) = (1 << sq, 1 << cq);
        let (at, total) = RingOffsets::lay_out(sq, cq).unwrap();
        let words = [
            at.sq_head, at.sq_tail, at.sq_flags, at.cq_head, at.cq_tail, at.cq_flags,
            at.cq_stalls,
        ];
        let mut ranges: Vec<_> = words.iter().map(|word| *word..word + 4).collect();
        ranges.push(at.sq_entries..at.sq_entries + 64 * sq);
        ranges.push(at.cq_entries..at.cq_entries + 16 * cq);
        ranges.sort_by_key(|range| range.start);
        prop_assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
        prop_assert!(ranges.iter().all(|range| range.end <= total && range.start % 4 == 0));
        prop_assert_eq!((at.sq_entries % 64, at.cq_entries % 64), (0, 0));
    }
}

/// Each field, alone set to ones, shows in exactly its own bytes.
#[test]
fn words_put_each_field_at_its_offset() {
    macro_rules! fields {
        ($type:ident: $($field:ident = $ones:expr),* $(,)?) => {$(
            let value = $type { $field: $ones, ..$type::default() };
            let image = bytes(value.to_words());
            let start = offset_of!($type, $field);
            let size = size_of_val(&value.$field);
            for (at, byte) in image.iter().enumerate() {
                let inside = (start..start + size).contains(&at);
                assert_eq!(*byte, if inside { 0xff } else { 0 }, "{} at {at}", stringify!($field));
            }
        )*};
    }
    fields! { Descriptor: src_addr = !0, dst_addr = !0, length = !0, src_node = !0, dst_node = !0,
    opcode = !0, flags = !0, reserved = [!0; 6] }
    fields! { SubmissionEntry: desc = Descriptor::from_words([!0; 4]), user_data = !0,
    signal_addr = !0, signal_value = !0, flags = !0, reserved = !0 }
    fields! { CompletionEntry: user_data = !0, result = !0, flags = !0 }
}

#[test]
fn each_static_rule_is_checked() {
    use descriptor::opcode;
    type Spoil = fn(&mut SubmissionEntry);
    let cases: [(EntryRule, Spoil); 16] = [
        (EntryRule::ReservedNotZero, |entry| entry.reserved = 1),
        (EntryRule::ReservedNotZero, |entry| entry.desc.reserved[0] = 1),
        (EntryRule::ReservedNotZero, |entry| entry.desc.reserved[5] = 1),
        (EntryRule::UnknownFlag, |entry| entry.flags = 1 << 4),
        (EntryRule::UnknownFlag, |entry| entry.desc.flags = 1 << 2),
        (EntryRule::FlagsExclude, |entry| entry.flags = submission::flags::SIGNAL),
        (EntryRule::FlagsExclude, |entry| entry.desc.flags = descriptor::flags::ALL),
        (EntryRule::UnusedNotZero, |entry| entry.signal_value = 1),
        (EntryRule::UnusedNotZero, |entry| entry.desc.opcode = opcode::FENCE),
        (EntryRule::SignalMisaligned, |entry| {
            entry.flags = submission::flags::SIGNAL_ADD;
            entry.signal_addr = address(1, 4).unwrap();
        }),
        (EntryRule::NoOpcode, |entry| entry.desc.opcode = 0),
        (EntryRule::UnknownOpcode, |entry| entry.desc.opcode = 6),
        (EntryRule::NoLength, |entry| entry.desc.length = 0),
        (EntryRule::WrongNode, |entry| entry.desc.dst_node = NODE + 1),
        (EntryRule::WrongNode, |entry| {
            entry.desc.opcode = opcode::FILL;
            entry.desc.src_node = NODE + 1;
        }),
        (EntryRule::Overlap, |entry| entry.desc.dst_addr = entry.desc.src_addr + 4095),
    ];
    assert_eq!(copy().check(NODE), Ok(()));
    for (rule, spoil) in cases {
        let mut entry = copy();
        spoil(&mut entry);
        assert_eq!(entry.check(NODE), Err(rule), "{entry:?}");
        assert!(rule.errno() > 0);
    }
}

#[test]
fn what_is_allowed_passes() {
    let mut remote = copy();
    remote.desc.src_node = NODE + 1;
    remote.desc.src_addr = remote.desc.dst_addr;
    assert_eq!(remote.check(NODE), Ok(()), "equal addresses of two nodes do not overlap");
    let mut signal = copy();
    signal.flags = submission::flags::SIGNAL_STORE | submission::flags::LINK;
    signal.signal_addr = address(5, 8).unwrap();
    assert_eq!(signal.check(NODE), Ok(()));
    let mut fence = SubmissionEntry { flags: submission::flags::DRAIN, ..Default::default() };
    fence.desc.opcode = descriptor::opcode::FENCE;
    assert_eq!(fence.check(NODE), Ok(()));
    let mut next_to = copy();
    next_to.desc.dst_addr = next_to.desc.src_addr + 4096;
    assert_eq!(next_to.check(NODE), Ok(()));
}

#[test]
fn generations_wrap_without_zero() {
    assert_eq!(next_generation(1), 2);
    assert_eq!(next_generation(1023), 1);
    assert_eq!((region_id(0, 0), region_id(1 << 14, 1), region_id(0, 1 << 10)), (None, None, None));
}

#[test]
fn versions_are_checked_both_ways() {
    assert!(compatible(1, 1, 1, 1));
    assert!(compatible(2, 1, 5, 2));
    assert!(!compatible(3, 3, 2, 1), "the driver is too old");
    assert!(!compatible(1, 1, 4, 2), "the caller is too old");
}

#[test]
fn a_layout_needs_powers_of_two_that_fit() {
    assert_eq!(RingOffsets::lay_out(3, 4), None);
    assert_eq!(RingOffsets::lay_out(4, 0), None);
    assert_eq!(RingOffsets::lay_out(1 << 31, 1), None);
}
