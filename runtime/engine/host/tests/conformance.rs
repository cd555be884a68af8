//! The host engine is an engine: the contract's tests for one to four ranks as threads.

mod world;

use stepccl_engine::conformance;

#[test]
fn without_channels() {
    for ranks in 1..=4 {
        conformance::all(ranks, &|ranks| world::boxed(ranks, 0));
    }
}
