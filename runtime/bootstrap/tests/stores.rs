//! What every store does the same.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use stepccl_bootstrap::{
    FileStore, MAX_KEY_BYTES, MemoryStore, Secret, Store, StoreError, TcpStore, TcpStoreLimits,
    TcpStoreServer,
};

/// One store, seen by several clients.
fn check(clients: &[&dyn Store]) {
    let (one, last) = (clients[0], clients[clients.len() - 1]);
    assert_eq!(one.try_get("nothing").unwrap(), None);
    let start = Instant::now();
    let error = one.get("nothing", start + Duration::from_millis(30)).unwrap_err();
    assert!(matches!(&error, StoreError::Timeout { key, .. } if key == "nothing"), "{error:?}");
    assert!(start.elapsed() >= Duration::from_millis(30));
    assert!(start.elapsed() < Duration::from_secs(5));

    for value in [&b""[..], b"binary\0\xff", &[7; 100_000]] {
        one.set("a/b c.%", value).unwrap();
        assert_eq!(last.try_get("a/b c.%").unwrap().unwrap(), value);
        assert_eq!(last.get("a/b c.%", Instant::now()).unwrap(), value);
    }

    let too_long = "k".repeat(MAX_KEY_BYTES + 1);
    for key in ["", &too_long] {
        assert!(matches!(one.set(key, b""), Err(StoreError::Key { .. })));
        assert!(matches!(one.try_get(key), Err(StoreError::Key { .. })));
        assert!(matches!(one.get(key, Instant::now()), Err(StoreError::Key { .. })));
        assert!(matches!(one.add(key, 1), Err(StoreError::Key { .. })));
    }
    one.set(&"k".repeat(MAX_KEY_BYTES), b"long").unwrap();

    assert_eq!(one.add("counter", -3).unwrap(), -3);
    assert_eq!(last.try_get("counter").unwrap().unwrap(), b"-3");
    one.set("counter", b"40").unwrap();
    assert_eq!(last.add("counter", 2).unwrap(), 42);
    one.set("words", b"forty").unwrap();
    assert!(matches!(one.add("words", 1), Err(StoreError::Counter { .. })));
    one.set("most", i64::MAX.to_string().as_bytes()).unwrap();
    assert!(matches!(one.add("most", 1), Err(StoreError::Counter { .. })));

    // A waiter is answered by a later set, and no sum is given twice.
    let each = 40;
    let sums: Vec<i64> = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| one.get("later", Instant::now() + Duration::from_secs(20)));
        let adders: Vec<_> = clients
            .iter()
            .map(|client| {
                scope.spawn(move || {
                    (0..each).map(|_| client.add("sum", 1).unwrap()).collect::<Vec<i64>>()
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(20));
        last.set("later", b"now").unwrap();
        assert_eq!(waiter.join().unwrap().unwrap(), b"now");
        adders.into_iter().flat_map(|a| a.join().unwrap()).collect()
    });
    let all: BTreeSet<i64> = sums.iter().copied().collect();
    assert_eq!(all, (1..=each * clients.len() as i64).collect());
}

#[test]
fn memory() {
    let store = MemoryStore::new();
    check(&[&store, &store, &store]);
}

#[test]
fn files() {
    let directory = tempfile::tempdir().unwrap();
    let open = || FileStore::open(directory.path()).unwrap();
    let (one, two, three) = (open(), open(), open());
    check(&[&one, &two, &three]);
}

#[test]
fn tcp() {
    for secret in [None, Some(Secret::from_bytes([3; 32]))] {
        let server =
            TcpStoreServer::bind("127.0.0.1:0", secret.clone(), TcpStoreLimits::default()).unwrap();
        let address = server.address().to_string();
        let open = || TcpStore::connect(&address, secret.clone(), Duration::from_secs(20)).unwrap();
        let (one, two) = (open(), open());
        // The first is shared by two threads.
        check(&[&one, &one, &two]);
    }
}
