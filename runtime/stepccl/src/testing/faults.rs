//! Engines that fail in the middle of something.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::{Duration, Instant};

use stepccl_engine::RankState;
use stepccl_plan::{Algorithm, Collective, DType, ReduceOp};

use super::manners::{Fault, Manners};
use super::mock::lock;
use super::operations::Spec;
use super::schedule::Cluster;
use crate::{Error, LossReason};

const STAGING: usize = 64 << 10;

fn all_reduce(count: usize) -> Spec {
    Spec::Collective {
        collective: Collective::AllReduce,
        algorithm: Algorithm::Direct,
        dtype: DType::I32,
        op: ReduceOp::Sum,
        count,
        page_bytes: 256,
        depth: 2,
        in_place: false,
    }
}

fn message(from: u32, to: u32, bytes: usize) -> Spec {
    Spec::Message { from, to, bytes, tag: 7 }
}

fn cluster(ranks: u32, manners: Manners, specs: &[Spec]) -> Cluster {
    let mut cluster = Cluster::new(ranks, 1, STAGING, manners, 1);
    specs.iter().for_each(|spec| cluster.call(spec));
    cluster
}

/// Let all ranks go until rank 0 has ended everything; its outcomes, by operation.
fn outcomes(cluster: &mut Cluster) -> Vec<(u64, Result<(), Error>)> {
    let until = Instant::now() + Duration::from_secs(20);
    for rank in 0..cluster.ranks.len() {
        while cluster.add(rank) {}
    }
    while !cluster.ranks[0].under_way.is_empty() {
        assert!(Instant::now() < until, "rank 0 does not end");
        for rank in 0..cluster.ranks.len() {
            cluster.pass(rank);
            lock(&cluster.world).tick();
        }
    }
    let mut ended = std::mem::take(&mut cluster.ranks[0].ended);
    ended.sort_by_key(|(number, _)| *number);
    ended
}

fn error(outcome: &Result<(), Error>) -> &Error {
    outcome.as_ref().expect_err("the operation must fail")
}

fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
}

/// Rank 0 has given everything back, and its peers hear whom it blames.
fn gave_up(cluster: &mut Cluster, culprit: u32) {
    assert_eq!(lock(&cluster.world).state(0), RankState::Failed { culprit });
    assert_eq!(cluster.ranks[0].progress.cx.in_progress(), 0);
    assert!(cluster.ranks[0].progress.is_empty());
    assert_eq!(lock(&cluster.world).regions_of(0), 0, "regions that nobody gave back");
}

#[test]
fn an_engine_that_fails_in_the_middle_ends_all_and_names_the_operation() {
    for fault in [Fault::Submit, Fault::Completion, Fault::Signal] {
        for channel in [0, 100] {
            for nth in [0, 1, 5, 9] {
                let manners = Manners { channel, ..Manners::default() };
                let mut cluster =
                    cluster(2, manners, &[all_reduce(500), message(1, 0, 40), all_reduce(3)]);
                lock(&cluster.world).plan_fault(0, nth, fault);
                let ended = outcomes(&mut cluster);
                assert_eq!(ended.len(), 3, "{fault:?} {nth}");
                let texts: Vec<_> = ended
                    .iter()
                    .filter_map(|(_, outcome)| outcome.as_ref().err().map(ToString::to_string))
                    .collect();
                let of_engine =
                    |(_, o): &&(u64, Result<(), Error>)| matches!(o, Err(Error::Engine { .. }));
                let failed: Vec<_> = ended.iter().filter(of_engine).collect();
                assert_eq!(failed.len(), 1, "one operation fails by itself: {texts:?}");
                let number = failed[0].0;
                let name = if number == 1 { "recv #1 (peer 1)" } else { "all_reduce #" };
                let text = error(&failed[0].1).to_string();
                says(
                    &text,
                    &["rank 0 of 2", name, "bytes on communicator 'mock.0'", "mock engine"],
                );
                for (other, outcome) in ended.iter().filter(|(other, _)| *other != number) {
                    if let Err(error) = outcome {
                        let Error::Broken { first, .. } = error else {
                            panic!("operation {other}: {error}")
                        };
                        assert_eq!(*first, text);
                    }
                }
                gave_up(&mut cluster, 0);
            }
        }
    }
}

#[test]
fn a_rank_without_regions_fails_and_gives_back_those_it_has() {
    for regions in 0..2 {
        let manners = Manners { regions, ..Manners::default() };
        for spec in [all_reduce(20), message(1, 0, 40)] {
            let mut cluster = cluster(2, manners, &[spec]);
            let ended = outcomes(&mut cluster);
            says(&error(&ended[0].1).to_string(), &["rank 0 of 2", "#0", "regions are in use"]);
            gave_up(&mut cluster, 0);
        }
    }
}

#[test]
fn the_time_of_an_operation_behind_a_stuck_one_is_its_own() {
    // Nobody sends to rank 0, so the messages stand still; the later has less time.
    let mut cluster = cluster(3, Manners::default(), &[]);
    for (bytes, timeout) in [(10, 600_000), (20, 1), (30, 600_000)] {
        let parts = cluster.parts(&message(2, 0, bytes));
        let mut part = parts.into_iter().next().flatten().expect("rank 0 receives");
        part.identity.timeout = Duration::from_millis(timeout);
        cluster.ranks[0].queue(part);
        cluster.add(0);
    }
    let parts = cluster.parts(&all_reduce(4));
    cluster.ranks[0].queue(parts.into_iter().next().flatten().expect("rank 0 takes part"));
    cluster.add(0);
    cluster.pass(0);
    assert!(cluster.ranks[0].ended.is_empty());
    std::thread::sleep(Duration::from_millis(3));
    cluster.rest(0);
    let ended = outcomes(&mut cluster);
    let Error::Timeout { waiting_for, running: false, .. } = error(&ended[1].1) else {
        panic!("{:?}", ended[1])
    };
    // The first of its lane waits for rank 2; the all_reduce waits for others.
    assert_eq!(waiting_for.0, [2]);
    let text = error(&ended[1].1).to_string();
    says(&text, &["rank 0 of 3", "recv #1 (peer 2) of 20 bytes", "mock engine", "rank 2."]);
    for other in [0, 2, 3] {
        let Error::Broken { first, .. } = error(&ended[other].1) else {
            panic!("{:?}", ended[other])
        };
        assert_eq!(*first, text);
    }
    gave_up(&mut cluster, 2);
}

#[test]
fn a_system_that_lets_nobody_wait_is_an_error_of_the_first_operation() {
    let mut cluster = cluster(2, Manners::default(), &[all_reduce(4), all_reduce(5)]);
    lock(&cluster.world).plan_fault(0, 0, Fault::Park);
    while cluster.add(0) {}
    while cluster.pass(0) {}
    cluster.rest(0);
    let ended = outcomes(&mut cluster);
    let text = error(&ended[0].1).to_string();
    says(&text, &["rank 0 of 2: all_reduce #0 of 16 bytes", "mock engine: futex: made up"]);
    assert!(matches!(error(&ended[1].1), Error::Broken { .. }), "{ended:?}");
    gave_up(&mut cluster, 0);
}

#[test]
fn a_lost_peer_is_an_error_of_the_operation_that_needs_it() {
    for reason in [LossReason::Died, LossReason::Closed, LossReason::Failed { culprit: 1 }] {
        let mut cluster = cluster(3, Manners::default(), &[]);
        for (from, bytes) in [(1, 10), (2, 20)] {
            let parts = cluster.parts(&message(from, 0, bytes));
            cluster.ranks[0].queue(parts.into_iter().next().flatten().expect("rank 0 receives"));
            cluster.add(0);
        }
        cluster.pass(0);
        match reason {
            LossReason::Died => lock(&cluster.world).kill(2),
            LossReason::Closed => lock(&cluster.world).announce(2, RankState::Closed),
            LossReason::Failed { culprit } => {
                lock(&cluster.world).announce(2, RankState::Failed { culprit });
            }
            LossReason::Unreachable { .. } | LossReason::Aborted { .. } => {
                panic!("not in the list")
            }
        }
        cluster.rest(0);
        let ended = outcomes(&mut cluster);
        let text = error(&ended[1].1).to_string();
        let Error::PeerLost { peer: 2, pid: 1002, reason: found, .. } = error(&ended[1].1) else {
            panic!("{text}")
        };
        assert_eq!(*found, reason);
        says(&text, &["rank 0 of 3", "recv #1 (peer 2) of 20 bytes", "lost rank 2 (pid 1002)"]);
        assert!(matches!(error(&ended[0].1), Error::Broken { .. }), "{ended:?}");
        gave_up(&mut cluster, if reason == (LossReason::Failed { culprit: 1 }) { 1 } else { 2 });
    }
}

#[test]
fn a_peer_that_closed_is_missed_only_by_who_waits_for_it() {
    let mut cluster = cluster(3, Manners::default(), &[]);
    let parts = cluster.parts(&message(1, 0, 10));
    let mut parts = parts.into_iter();
    cluster.ranks[0].queue(parts.next().flatten().expect("rank 0 receives"));
    cluster.ranks[1].queue(parts.next().flatten().expect("rank 1 sends"));
    cluster.add(0);
    cluster.pass(0);
    lock(&cluster.world).announce(2, RankState::Closed);
    cluster.rest(0);
    assert!(cluster.ranks[0].ended.is_empty(), "rank 2 is not needed");
    // What the sender told before it left counts.
    cluster.add(1);
    while cluster.pass(1) {}
    lock(&cluster.world).announce(1, RankState::Closed);
    lock(&cluster.world).calm();
    std::thread::sleep(Duration::from_millis(60));
    cluster.rest(0);
    let ended = outcomes(&mut cluster);
    assert!(ended[0].1.is_ok(), "{ended:?}");
}

#[test]
fn a_failed_ring_leaves_kept_memory_to_the_channel() {
    let manners = Manners { channel: 100, ..Manners::default() };
    let mut cluster = cluster(2, manners, &[all_reduce(500)]);
    cluster.keep_everything();
    lock(&cluster.world).plan_fault(0, 0, Fault::Ring);
    let ended = outcomes(&mut cluster);
    says(&error(&ended[0].1).to_string(), &["all_reduce #0", "completion ring: the tail"]);
    // The channel is still at it, so the regions stay.
    assert!(lock(&cluster.world).regions_of(0) > 0);
    assert_eq!(lock(&cluster.world).state(0), RankState::Failed { culprit: 0 });
}

/// Set for the process that is to end.
const ENDS: &str = "STEPCCL_TEST_ENDS";

#[test]
fn a_failed_ring_ends_a_process_that_would_take_the_memory_back() {
    if std::env::var_os(ENDS).is_some() {
        let manners = Manners { channel: 100, ..Manners::default() };
        let mut cluster = cluster(2, manners, &[all_reduce(500)]);
        lock(&cluster.world).plan_fault(0, 0, Fault::Ring);
        outcomes(&mut cluster);
        // Here the owner would free what a channel still writes.
        return;
    }
    let name = "testing::faults::a_failed_ring_ends_a_process_that_would_take_the_memory_back";
    let output = Command::new(std::env::current_exe().expect("this test runs"))
        .args(["--exact", name, "--nocapture"])
        .env(ENDS, "1")
        .output()
        .expect("a process can be started");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(6), "SIGABRT: {text}");
    says(&text, &["rank 0 of 2: all_reduce #0", "a channel does not end its copy: aborting"]);
}
