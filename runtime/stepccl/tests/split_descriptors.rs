//! Communicators that come and go leave no descriptor behind. Alone in its process, which counts.

mod common;

use common::footprint::descriptors;
use common::{config, on_ranks};

#[test]
fn many_splits_in_sequence_leave_no_descriptor() {
    let before = descriptors();
    on_ranks(3, &config(), |comm| {
        comm.barrier().unwrap();
        // One rank counts while the others wait: counting opens a descriptor too.
        let own = (comm.rank() == 0).then(descriptors);
        comm.barrier().unwrap();
        for i in 0..40i32 {
            let color = (comm.rank() as i32 + i) % 3;
            let part = comm.split((color > 0).then_some(1), i).unwrap();
            if let Some(part) = part {
                part.barrier().unwrap();
                assert_eq!(part.ranks(), 2);
            }
        }
        comm.barrier().unwrap();
        assert_eq!((comm.rank() == 0).then(descriptors), own);
        comm.barrier().unwrap();
    });
    assert_eq!(descriptors(), before);
}
