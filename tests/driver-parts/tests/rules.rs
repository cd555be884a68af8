//! Lengths, ranges, rights, rings, chains and patterns.

use dma_engine_uapi::COMMANDS;
use driver_parts::abi::command::access::{ALL, READ, WRITE};
use driver_parts::abi::{RingSetup, ioctl};
use driver_parts::parts::arguments::{Extent, FIRST_SIZES, LONGEST, extent, low_byte};
use driver_parts::parts::chain::Chain;
use driver_parts::parts::range::{Pages, pages, part, rights, use_of};
use driver_parts::parts::setup::{MAX_ENTRIES, plan};
use driver_parts::parts::{errno, pattern};
use proptest::prelude::*;

#[test]
fn sizes_are_those_of_the_structs() {
    // Version 1: no struct has grown yet.
    for ((number, size), (byte, first)) in COMMANDS.into_iter().zip(FIRST_SIZES) {
        assert_eq!(low_byte(number), Some(byte));
        assert_eq!(size as u32, first, "command {byte}");
    }
    for number in [0, 0x5401, ioctl::QUERY | 1 << 16, ioctl::QUERY | 3 << 30] {
        assert_eq!(low_byte(number), None, "{number:#x}");
    }
}

#[test]
fn extents() {
    // A struct of 16 bytes that has grown to 32.
    for (size, expected) in [
        (0, Err(errno::EINVAL)),
        (15, Err(errno::EINVAL)),
        (16, Ok(Extent { copied: 16, tail: 0 })),
        (24, Ok(Extent { copied: 24, tail: 0 })),
        (32, Ok(Extent { copied: 32, tail: 0 })),
        (40, Ok(Extent { copied: 32, tail: 8 })),
        (LONGEST, Ok(Extent { copied: 32, tail: LONGEST - 32 })),
        (LONGEST + 1, Err(errno::E2BIG)),
        (u32::MAX, Err(errno::E2BIG)),
    ] {
        assert_eq!(extent(size, 16, 32), expected, "{size}");
    }
}

#[test]
fn pages_of_ranges() {
    let of = |address, length| pages(address, length, 1 << 40, 1 << 47, 4096);
    assert_eq!(of(0x1000, 1), Ok(Pages { start: 0x1000, offset: 0, count: 1 }));
    assert_eq!(of(0x1fff, 2), Ok(Pages { start: 0x1000, offset: 0xfff, count: 2 }));
    assert_eq!(of(0x1001, 4096), Ok(Pages { start: 0x1000, offset: 1, count: 2 }));
    assert_eq!(of((1 << 47) - 1, 1).map(|pages| pages.count), Ok(1));
    assert_eq!(of(0, 1 << 40).map(|pages| pages.count), Ok(1 << 28));
    for (address, length, expected) in [
        (0x1000, 0, errno::EINVAL),
        (0x1000, (1 << 40) + 1, errno::EINVAL),
        (u64::MAX, 1, errno::EOVERFLOW),
        (u64::MAX, 1 << 40, errno::EOVERFLOW),
        ((1 << 47) - 1, 2, errno::EOVERFLOW),
        (1 << 63, 1, errno::EOVERFLOW),
    ] {
        assert_eq!(of(address, length), Err(expected), "{address:#x} {length}");
    }
}

#[test]
fn rights_of_regions() {
    assert_eq!(rights(0), Err(errno::EINVAL));
    assert_eq!(rights(4 | READ), Err(errno::EOPNOTSUPP));
    assert!([READ, WRITE, ALL].iter().all(|asked| rights(*asked).is_ok()));
    assert_eq!(use_of(0, 10, 10, READ, READ), Ok(()));
    assert_eq!(use_of(0, 10, 10, READ, WRITE), Err(errno::EACCES));
    assert_eq!(use_of(1, 10, 10, ALL, READ), Err(errno::ERANGE));
    assert_eq!(use_of(u64::MAX, u64::MAX, 10, ALL, READ), Err(errno::ERANGE));
}

#[test]
fn parts_of_regions() {
    for (offset, length, expected) in [
        (0, 0, Ok(100)),
        (30, 0, Ok(70)),
        (99, 1, Ok(1)),
        (0, 100, Ok(100)),
        (100, 0, Err(errno::ERANGE)),
        (1, 100, Err(errno::ERANGE)),
        (u64::MAX, u64::MAX, Err(errno::ERANGE)),
    ] {
        assert_eq!(part(offset, length, 100), expected, "{offset} {length}");
    }
}

#[test]
fn rings_that_can_be() {
    let asked = |sq_entries, cq_entries| RingSetup {
        sq_entries,
        cq_entries,
        numa_node: -1,
        ..RingSetup::default()
    };
    let made = plan(&asked(8, 0), 4096).unwrap();
    assert_eq!((made.sq_entries, made.cq_entries, made.bytes % 4096), (8, 16, 0));
    let most = plan(&asked(MAX_ENTRIES, 2 * MAX_ENTRIES), 4096).unwrap();
    assert!(u64::from(most.bytes) >= u64::from(MAX_ENTRIES) * (64 + 2 * 16));
    for (sq, cq) in [(0, 0), (6, 0), (8, 12), (8, 4), (2 * MAX_ENTRIES, 0), (8, 4 * MAX_ENTRIES)] {
        assert_eq!(plan(&asked(sq, cq), 4096), Err(errno::EINVAL), "{sq} {cq}");
    }
    let polled = RingSetup { flags: 1, ..asked(8, 0) };
    assert_eq!(plan(&polled, 4096), Err(errno::EOPNOTSUPP));
    assert_eq!(plan(&RingSetup { poll_idle_us: 1, ..asked(8, 0) }, 4096), Err(errno::EINVAL));
}

proptest! {
    /// Against the definition: an entry is cancelled where the entry before it is linked to it and
    /// has failed or was cancelled itself.
    #[test]
    fn chains(entries in prop::collection::vec(any::<(bool, bool, bool)>(), 0..60)) {
        let mut chain = Chain::new();
        let (mut before_links, mut before_failed) = (false, false);
        for (links, succeeds, batch_ends) in entries {
            let cancelled = before_links && before_failed;
            prop_assert_eq!(chain.cancels(), cancelled);
            let succeeded = succeeds && !cancelled;
            chain.end(links, succeeded);
            (before_links, before_failed) = (links, !succeeded);
            if batch_ends {
                chain.cut();
                before_links = false;
            }
        }
    }

    #[test]
    fn patterns(word: u64, at in 0_u64..100) {
        let repeated: Vec<u8> = word.to_ne_bytes().into_iter().cycle().take(120).collect();
        prop_assert_eq!(&pattern::from(word, at).to_ne_bytes(), &repeated[at as usize..][..8]);
    }
}
