//! The host engine is an engine: the contract's tests for one to four ranks as threads.
#![cfg(not(loom))]

mod world;

use stepccl_engine::{Engine, conformance};

/// One test a number of channels: they run beside each other.
fn conforms(channels: u32) {
    for ranks in 1..=4 {
        conformance::all(ranks, &|ranks| {
            let engines = world::engines(ranks, channels).into_iter();
            engines.map(|engine| Box::new(engine) as Box<dyn Engine>).collect()
        });
    }
}

#[test]
fn without_channels() {
    conforms(0);
}

#[test]
fn with_one_channel() {
    conforms(1);
}

#[test]
fn with_three_channels() {
    conforms(3);
}
