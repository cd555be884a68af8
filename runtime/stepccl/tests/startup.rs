//! How ranks come together over each store, and what is said where they cannot.

mod common;

use std::time::{Duration, Instant};

use common::config;
use stepccl::{
    BootstrapError, Communicator, Config, Error, FileStore, MemoryStore, ReduceOp, Secret, Store,
    TcpStore, TcpStoreLimits, TcpStoreServer,
};

/// Join as each of `ranks`, given as rank, world size and settings; results in that order.
fn join(store: &dyn Store, ranks: &[(u32, u32, Config)]) -> Vec<Result<Communicator, Error>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = ranks
            .iter()
            .map(|(rank, world, config)| {
                scope.spawn(move || Communicator::new(store, "start.0", *rank, *world, config))
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

fn works(ranks: Vec<Result<Communicator, Error>>) {
    let ranks: Vec<_> = ranks.into_iter().map(Result::unwrap).collect();
    std::thread::scope(|scope| {
        for comm in &ranks {
            scope.spawn(|| {
                let mut data = [1i32; 3];
                comm.all_reduce_in_place(&mut data, ReduceOp::Sum).unwrap();
                assert_eq!(data, [comm.ranks() as i32; 3]);
            });
        }
    });
}

/// All were refused, and each says why.
fn refused(results: Vec<Result<Communicator, Error>>, reasons: &[&str]) {
    for result in results {
        let error = result.unwrap_err();
        let text = error.to_string();
        assert!(
            matches!(
                error,
                Error::Bootstrap(
                    BootstrapError::Refused { .. } | BootstrapError::DuplicateRank { .. }
                )
            ),
            "{text}"
        );
        assert!(reasons.iter().any(|r| text.contains(r)), "none of {reasons:?} in: {text}");
    }
}

#[test]
fn over_a_file_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path()).unwrap();
    works(join(&store, &[(0, 2, config()), (1, 2, config())]));
}

#[test]
fn over_a_tcp_store_with_a_secret() {
    let text = "a secret of the tests";
    let secret = || Some(Secret::from_text(text).unwrap());
    let server = TcpStoreServer::bind("127.0.0.1:0", secret(), TcpStoreLimits::default()).unwrap();
    let address = server.address().to_string();
    let store = TcpStore::connect(&address, secret(), Duration::from_secs(10)).unwrap();
    let config = || Config { secret: Some(text.to_owned()), ..config() };
    works(join(&store, &[(0, 3, config()), (1, 3, config()), (2, 3, config())]));
    let wrong = Secret::from_text("another secret of the tests").unwrap();
    let error = TcpStore::connect(&address, Some(wrong), Duration::from_secs(10)).unwrap_err();
    assert!(error.to_string().contains("secret"), "{error}");
}

#[test]
fn a_wrong_secret_is_refused_on_both_sides() {
    let with = |secret: &str| Config { secret: Some(secret.to_owned()), ..config() };
    let started = Instant::now();
    let ranks = [(0, 2, with("the secret of rank 0")), (1, 2, with("the secret of rank 1"))];
    refused(join(&MemoryStore::new(), &ranks), &["secret"]);
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_short_secret_is_an_argument_error_that_does_not_show_it() {
    let config = Config { secret: Some("hunter2".to_owned()), ..config() };
    let error = Communicator::new(&MemoryStore::new(), "start.0", 0, 1, &config).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::InvalidArgument { name: "secret", .. }), "{text}");
    assert!(!text.contains("hunter2") && text.contains("16"), "{text}");
}

#[test]
fn another_world_size_is_refused_on_both_sides() {
    let ranks = [(0, 2, config()), (1, 3, config())];
    refused(join(&MemoryStore::new(), &ranks), &["2", "3"]);
}

#[test]
fn a_rank_that_is_there_twice_is_refused_on_both_sides() {
    let ranks = [(0, 2, config()), (0, 2, config())];
    refused(join(&MemoryStore::new(), &ranks), &["rank 0"]);
}

#[test]
fn a_missing_rank_is_named_when_the_time_is_over() {
    let config = Config { start_timeout: Duration::from_millis(300), ..config() };
    for result in join(&MemoryStore::new(), &[(0, 3, config.clone()), (2, 3, config)]) {
        let error = result.unwrap_err();
        let text = error.to_string();
        // The first to run out of time tells the other.
        assert!(text.contains("rank 1"), "{text}");
    }
}

#[test]
fn bad_arguments_are_refused_before_anything_is_written() {
    let store = MemoryStore::new();
    for (name, rank, ranks) in
        [("", 0, 1), ("c 0", 0, 1), ("c.0", 1, 1), ("c.0", 0, 0), ("c.0", 0, 1 << 20)]
    {
        let error = Communicator::new(&store, name, rank, ranks, &config()).unwrap_err();
        assert!(matches!(error, Error::Bootstrap(BootstrapError::Argument { .. })), "{error}");
    }
    works(vec![Communicator::new(&store, "c.0", 0, 1, &config())]);
}
