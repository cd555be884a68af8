//! Every check, run at once, each within a bounded time.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::finding::Finding;
use super::scene::Scene;
use super::{
    clock, cpus, descriptors, dev_shm, dma_device, gpus, huge_pages, memlock, namespaces, network,
    numa, rdma, shared_memory, single_copy, variables,
};

/// Time that all checks together may take.
const LIMIT: Duration = Duration::from_secs(5);

/// A check and its name, a few words at most.
type Check = (&'static str, fn(&Scene) -> Finding);

/// Every check, in the order in which they are told: what stops a job first.
const CHECKS: [Check; 15] = [
    ("variables", variables::check),
    ("shared memory", shared_memory::check),
    ("descriptors", descriptors::check),
    ("sockets", network::check),
    ("single copy", single_copy::check),
    ("CPUs", cpus::check),
    ("NUMA", numa::check),
    ("clock", clock::check),
    ("huge pages", huge_pages::check),
    ("memlock", memlock::check),
    ("/dev/shm", dev_shm::check),
    ("namespaces", namespaces::check),
    ("dma_device", dma_device::check),
    ("GPUs", gpus::check),
    ("RDMA", rdma::check),
];

/// What each check found. One that does not answer in time has failed; its thread is left behind.
pub(super) fn all(scene: &Scene) -> Vec<(&'static str, Finding)> {
    run(&CHECKS, scene, LIMIT)
}

fn run(checks: &[Check], scene: &Scene, limit: Duration) -> Vec<(&'static str, Finding)> {
    let until = Instant::now() + limit;
    let mut refused = None;
    let started: Vec<_> = checks
        .iter()
        .map(|(name, check)| {
            let (send, receive) = mpsc::channel();
            let (copy, check) = (scene.clone(), *check);
            let answer = send.clone();
            let thread = thread::Builder::new().name("check".to_owned());
            // The receiver is gone only where time was over.
            if let Err(error) = thread.spawn(move || answer.send(check(&copy))) {
                refused = Some(error);
                // Better an answer without a bound than none.
                let _ = send.send(check(scene));
            }
            (*name, receive)
        })
        .collect();
    let lost = || {
        Finding::fail(
            format!("no answer within {limit:?}, or an error of this command"),
            "sudo dmesg | tail  # a device or a file system may hang",
        )
    };
    let found = started.into_iter().map(|(name, receive)| {
        let left = until.saturating_duration_since(Instant::now());
        (name, receive.recv_timeout(left).unwrap_or_else(|_| lost()))
    });
    let threads = |error| {
        let fact = format!("none can be started, and jobs need them: {error}");
        ("threads", Finding::fail(fact, "ulimit -u 65536  # docker: --pids-limit=-1"))
    };
    let found: Vec<_> = found.collect();
    found.into_iter().chain(refused.map(threads)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn a_check_that_hangs_is_a_failure_of_its_own() {
        let (scene, _folder) = Scene::made_up();
        let hangs: Check = ("hangs", |_| {
            thread::sleep(Duration::from_secs(20));
            Finding::ok("late")
        });
        let quick: Check = ("quick", |_| Finding::ok("here"));
        let found = run(&[hangs, quick], &scene, Duration::from_millis(500));
        assert_eq!(found[0].1.verdict, Verdict::Fail);
        assert_eq!(found[1].1, Finding::ok("here"));
    }

    #[test]
    fn what_is_not_ok_has_a_fix_or_is_not_here() {
        let (scene, _folder) = Scene::made_up();
        for (name, check) in CHECKS.iter().filter(|(name, _)| *name != "single copy") {
            let found = check(&scene);
            assert!(!found.fact.is_empty() && !found.fact.contains('\n'), "{name}: {found:?}");
            let needs_fix = matches!(found.verdict, Verdict::Warn | Verdict::Fail);
            assert!(!needs_fix || found.fix.is_some(), "{name}: {found:?}");
        }
    }
}
