//! Who copies, and memory as a device sees it.

use driver_parts::abi::descriptor::flags::{CHANNEL, CPU};
use driver_parts::parts::errno::EOPNOTSUPP;
use driver_parts::parts::path::{Facts, Path, choose};
use driver_parts::parts::pieces::Extents;
use driver_parts::parts::segments::{Segment, Segments};
use proptest::prelude::*;

#[test]
fn paths() {
    let usual =
        Facts { flags: 0, reachable: true, bits: 8192, length: 8192, align: 8, least: 4096 };
    let short = Facts { length: 4088, bits: 4088, ..usual };
    let odd = Facts { bits: 8192 | 4, ..usual };
    let away = Facts { reachable: false, align: 1, ..usual };
    for (facts, expected) in [
        (usual, Ok(Path::Channel)),
        (short, Ok(Path::Short)),
        (odd, Ok(Path::Misaligned)),
        (away, Ok(Path::NoChannel)),
        (Facts { flags: CPU, ..usual }, Ok(Path::Asked)),
        (Facts { flags: CPU, ..away }, Ok(Path::Asked)),
        // What insists on a channel gets one, or nothing.
        (Facts { flags: CHANNEL, ..usual }, Ok(Path::Channel)),
        (Facts { flags: CHANNEL, ..short }, Ok(Path::Channel)),
        (Facts { flags: CHANNEL, ..odd }, Err(EOPNOTSUPP)),
        (Facts { flags: CHANNEL, ..away }, Err(EOPNOTSUPP)),
        (Facts { align: 1, ..odd }, Ok(Path::Channel)),
    ] {
        assert_eq!(choose(&facts), expected, "{facts:?}");
    }
}

proptest! {
    #[test]
    fn segments_are_found(lengths in prop::collection::vec(1_u64..5000, 0..40), offset in 0_u64..100_000) {
        let mut start = 0;
        let mut bytes = Vec::new();
        let list: Vec<_> = (0_u64..).zip(&lengths).map(|(index, &length)| {
            let made = Segment { start, address: index << 32, length };
            bytes.extend((0..length).map(|within| ((index << 32) + within, length - within)));
            start += length;
            made
        }).collect();
        let expected = bytes.get(offset as usize).copied().unwrap_or((0, 0));
        prop_assert_eq!(Segments(&list).at(offset), expected);
    }
}
