//! Shared by the tests: ranks as threads of this process.

use stepccl_bootstrap::{BootstrapError, JoinConfig, Mesh, Store, join};

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
