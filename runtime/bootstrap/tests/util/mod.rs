//! Shared by the tests: what a rank says when it joins.

use std::time::{Duration, Instant};

use stepccl_bootstrap::{JoinConfig, Network, Secret};

/// Long enough for a loaded machine; tests that wait for it to pass use their own.
pub const TIMEOUT: Duration = Duration::from_secs(20);

pub fn config(name: &str, rank: u32, ranks: u32) -> JoinConfig {
    JoinConfig {
        name: name.to_owned(),
        rank,
        ranks,
        secret: Some(Secret::from_bytes([7; 32])),
        timeout: TIMEOUT,
        note: format!("note of {rank}").into_bytes(),
        network: Network::default(),
    }
}

pub fn soon() -> Instant {
    Instant::now() + TIMEOUT
}
