//! Messages of more than 2^31 elements.

mod common;

use std::time::Duration;

use common::{config, on_ranks};
use stepccl::{Config, ReduceOp};

/// What does not fit 31 bits, and does not end with a page.
const COUNT: usize = (1 << 31) + 12_345;

/// Places of elements that are not 0: the first and the last, and both sides of 2^31.
const PLACES: [usize; 5] = [0, 77, (1 << 31) - 1, 1 << 31, COUNT - 1];

#[test]
#[ignore = "takes 2 GiB of memory; make test runs it"]
fn more_than_two_to_the_31_elements_arrive() {
    // Machines can be slow to give so much memory.
    let config = Config { timeout: Duration::from_secs(300), ..config() };
    on_ranks(2, &config, |comm| {
        let me = comm.rank();
        // Pages that are only read cost no memory.
        let mut input = vec![0u8; COUNT];
        for (value, place) in (1..).zip(PLACES) {
            input[place] = value * 10 + me as u8;
        }
        let mut output = (me == 1).then(|| vec![0u8; COUNT]);
        comm.reduce(&input, output.as_deref_mut(), 1, ReduceOp::Sum).unwrap();
        if let Some(output) = output {
            for (value, place) in (1..).zip(PLACES) {
                assert_eq!(output[place], value * 20 + 1, "element {place}");
            }
            assert_eq!(output.iter().filter(|byte| **byte != 0).count(), PLACES.len());
        }
    });
}
