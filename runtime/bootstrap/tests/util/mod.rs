//! Shared by the tests: ranks as threads of this process.

use std::time::{Duration, Instant};

use stepccl_bootstrap::{BootstrapError, JoinConfig, Mesh, Secret, Store, join};

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
    }
}

pub fn soon() -> Instant {
    Instant::now() + TIMEOUT
}

/// Run `body` for each config on a thread of its own.
pub fn each<T: Send>(configs: Vec<JoinConfig>, body: impl Fn(JoinConfig) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let body = &body;
        let threads: Vec<_> =
            configs.into_iter().map(|config| scope.spawn(move || body(config))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Join with each config on a thread of its own.
pub fn join_all(store: &dyn Store, configs: Vec<JoinConfig>) -> Vec<Result<Mesh, BootstrapError>> {
    each(configs, |config| join(store, config))
}
