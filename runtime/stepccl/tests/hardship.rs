//! Little memory, few descriptors, no rights, namespaces, forks, signals: results are right or
//! errors say what, soon, and nothing stays behind.
//!
//! The test starts this very binary again with [`ROLE`] set; the child runs `child` alone.

mod common;

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::config;
use common::footprint::descriptors;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Uid, chown, fork, setuid};
use stepccl::{Communicator, Config, EngineChoice, Error, FileStore, LossReason, ReduceOp};

const ROLE: &str = "STEPCCL_TEST_HARDSHIP_ROLE";
const RANK: &str = "STEPCCL_TEST_HARDSHIP_RANK";
const STORE: &str = "STEPCCL_TEST_HARDSHIP_STORE";
/// Far above what a loaded machine needs.
const LONG: Duration = Duration::from_secs(60);
/// A user without rights.
const NOBODY: u32 = 65_534;

/// A child process that does not outlive the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Start a rank of two in `role`, behind the words of `before`.
fn start(before: &[&str], role: &str, rank: u32, store: &Path) -> Process {
    let exe = std::env::current_exe().unwrap();
    let words = before.iter().map(OsStr::new).chain([exe.as_os_str()]);
    let words: Vec<_> = words.chain(["--exact", "child", "--nocapture"].map(OsStr::new)).collect();
    let child = Command::new(words[0])
        .args(&words[1..])
        .env(ROLE, role)
        .env(RANK, rank.to_string())
        .env(STORE, store)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    Process(child)
}

fn succeeds(process: &mut Process, what: &str) {
    let until = Instant::now() + LONG;
    loop {
        if let Some(status) = process.0.try_wait().unwrap() {
            return assert!(status.success(), "{what}: {status}");
        }
        assert!(Instant::now() < until, "{what} hangs");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Two ranks as processes; the first may end as it likes where `first` says so.
fn two(before: &[&str], [first, second]: [&str; 2], first_fails: bool) {
    let store = tempfile::tempdir().unwrap();
    if Uid::effective().is_root() {
        chown(store.path(), Some(Uid::from_raw(store_owner(first))), None).unwrap();
    }
    let mut one = start(before, first, 0, store.path());
    let mut other = start(before, second, 1, store.path());
    succeeds(&mut other, &format!("rank 1, {second}"));
    if !first_fails {
        succeeds(&mut one, &format!("rank 0, {first}"));
    }
}

fn store_owner(role: &str) -> u32 {
    if role == "unprivileged" { NOBODY } else { Uid::effective().as_raw() }
}

/// Whether this test can be; says why it is skipped where not.
fn can(command: &[&str]) -> bool {
    let can = Command::new(command[0])
        .args(&command[1..])
        .arg("true")
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !can {
        println!("SKIPPED: `{} true` fails here", command.join(" "));
    }
    can
}

#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    if role == "unprivileged" {
        // Without the capability, and with memory that only its own process may read.
        setuid(Uid::from_raw(NOBODY)).unwrap();
        nix::sys::prctl::set_dumpable(false).unwrap();
    }
    let rank: u32 = std::env::var(RANK).unwrap().parse().unwrap();
    let store = FileStore::open(Path::new(&std::env::var_os(STORE).unwrap())).unwrap();
    let comm = Communicator::new(&store, "hardship.0", rank, 2, &config()).unwrap();
    work(&comm);
    match role.as_str() {
        "work" => {}
        "works_twice" => work(&comm),
        "unprivileged" | "apart" => {
            let why = comm.stats().single_copy;
            println!("single copy: {why}");
            assert!(why.starts_with("off"), "{why}");
        }
        "forks" => forks(comm),
        "leaves_a_child" => leaves_a_child(comm),
        "execs" => {
            let error = Command::new("sleep").arg("5").exec();
            panic!("sleep: {error}");
        }
        "is_told_to_end" => {
            std::thread::spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                nix::sys::signal::raise(nix::sys::signal::Signal::SIGTERM)
            });
            drop(comm.recv(&mut [0u8; 8], 1));
            std::thread::sleep(LONG);
        }
        "mourns" => mourns(&comm),
        other => panic!("{other}"),
    }
}

/// Short and long, with a sum and without.
fn work(comm: &Communicator) {
    for count in [1usize, 1000, 300_000] {
        let mut data = vec![f64::from(comm.rank()) + 1.0; count];
        comm.all_reduce_in_place(&mut data, ReduceOp::Sum).unwrap();
        assert!(data.iter().all(|v| *v == 3.0));
        let own = vec![comm.rank(); count];
        let mut all = vec![9; 2 * count];
        comm.all_gather(&own, &mut all).unwrap();
        assert!(all[..count].iter().all(|v| *v == 0) && all[count..].iter().all(|v| *v == 1));
    }
}

/// A child may not use what its parent has, and does it no harm.
fn forks(comm: Communicator) {
    // SAFETY:
    // - The child uses what the C library keeps right over a fork, and ends without destructors.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let error = comm.barrier().unwrap_err();
            let text = error.to_string();
            let right = matches!(error, Error::NotSupported { .. })
                && text.contains("communicator 'hardship.0', rank 0, in a process that was forked")
                && text.contains("make another one here");
            comm.abort("the child is not asked");
            drop(comm);
            // SAFETY:
            // - The call ends the process and touches no memory.
            unsafe { nix::libc::_exit(i32::from(!right)) }
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
            work(&comm);
        }
    }
}

/// Ends, while a child of its own still has all its descriptors.
fn leaves_a_child(comm: Communicator) {
    // SAFETY:
    // - The child only sleeps, and ends without destructors.
    if let ForkResult::Child = unsafe { fork() }.unwrap() {
        std::thread::sleep(Duration::from_secs(4));
        // SAFETY:
        // - The call ends the process and touches no memory.
        unsafe { nix::libc::_exit(0) }
    }
    std::mem::forget(comm);
    std::process::abort();
}

/// The other rank has gone, or goes soon: this one hears of it at once.
fn mourns(comm: &Communicator) {
    let started = Instant::now();
    let error = comm.recv(&mut [0u8; 16], 0).unwrap_err();
    let Error::PeerLost { peer: 0, reason: LossReason::Died, .. } = &error else {
        panic!("{error}")
    };
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}: {error}", started.elapsed());
}

#[test]
fn a_forked_child_is_refused_and_harms_nobody() {
    let store = tempfile::tempdir().unwrap();
    let mut one = start(&[], "forks", 0, store.path());
    let mut other = start(&[], "works_twice", 1, store.path());
    succeeds(&mut other, "rank 1");
    succeeds(&mut one, "rank 0, which forks");
}

#[test]
fn a_rank_whose_child_lives_on_is_missed_at_once() {
    two(&[], ["leaves_a_child", "mourns"], true);
}

#[test]
fn a_rank_that_becomes_another_program_is_missed_at_once() {
    two(&[], ["execs", "mourns"], true);
}

#[test]
fn a_rank_that_is_told_to_end_is_missed_at_once() {
    two(&[], ["is_told_to_end", "mourns"], true);
}

#[test]
fn without_the_right_to_read_others_everything_is_right() {
    if !Uid::effective().is_root() {
        return println!("SKIPPED: only root can become a user without rights");
    }
    two(&[], ["unprivileged", "unprivileged"], false);
}

#[test]
fn ranks_in_namespaces_of_their_own_work_together() {
    let apart = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
    if can(&apart) {
        two(&apart, ["apart", "apart"], false);
    }
}

#[test]
fn a_tiny_shared_memory_folder_is_not_missed() {
    let tiny = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        "mount -t tmpfs -o size=64k none /dev/shm && exec \"$@\"",
        "sh",
    ];
    if can(&tiny) {
        two(&tiny, ["work", "work"], false);
    }
}

/// Both ranks as threads of this process; the errors, by rank.
fn try_start(name: &str, config: &Config) -> [Result<(), Error>; 2] {
    let store = stepccl::MemoryStore::new();
    std::thread::scope(|scope| {
        let ranks = [0, 1].map(|rank| {
            let store = &store;
            scope.spawn(move || {
                let comm = Communicator::new(store, name, rank, 2, config)?;
                comm.barrier()
            })
        });
        ranks.map(|rank| rank.join().unwrap())
    })
}

/// In a process of its own: limits are of processes.
#[test]
fn limits_child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let engine =
        if role.ends_with("over_tcp") { EngineChoice::Tcp } else { EngineChoice::default() };
    let config = Config { engine, start_timeout: Duration::from_secs(3), ..config() };
    try_start("first.0", &config).into_iter().for_each(Result::unwrap);
    let before = descriptors();
    match role.as_str() {
        "few_descriptors" | "few_descriptors_over_tcp" => {
            let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
            for more in 0..200 {
                setrlimit(Resource::RLIMIT_NOFILE, (before + more) as u64, hard).unwrap();
                let outcomes = try_start(&format!("few.{more}"), &config);
                setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
                assert_eq!(descriptors(), before, "{more} more: {outcomes:?}");
                let texts: Vec<_> =
                    outcomes.iter().filter_map(|o| Some(o.as_ref().err()?.to_string())).collect();
                if texts.is_empty() {
                    assert!(more > 0, "no limit was met");
                    return;
                }
                let named = texts.iter().any(|t| t.contains("EMFILE") || t.contains("open files"));
                assert!(named, "{more} more: {texts:?}");
            }
            panic!("200 descriptors were not enough");
        }
        "little_memory" => {
            let (_, hard) = getrlimit(Resource::RLIMIT_AS).unwrap();
            let status = std::fs::read_to_string("/proc/self/statm").unwrap();
            let pages: u64 = status.split(' ').next().unwrap().parse().unwrap();
            let config = Config { buffer_bytes: Some(512 << 20), ..config };
            setrlimit(Resource::RLIMIT_AS, pages * 4096 + (256 << 20), hard).unwrap();
            let outcomes = try_start("little.0", &config);
            setrlimit(Resource::RLIMIT_AS, hard, hard).unwrap();
            let texts = outcomes.map(|o| o.unwrap_err().to_string());
            let named = texts.iter().any(|t| t.contains("ENOMEM") || t.contains("allocate memory"));
            assert!(named, "{texts:?}");
            assert_eq!(descriptors(), before);
            // The process is not harmed.
            let config = Config { buffer_bytes: None, ..config };
            try_start("after.0", &config).into_iter().for_each(Result::unwrap);
        }
        other => panic!("{other}"),
    }
}

fn limited(role: &str) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "limits_child", "--nocapture"])
        .env(ROLE, role)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    succeeds(&mut Process(child), role);
}

#[test]
fn few_descriptors_are_an_error_that_says_so_and_none_is_lost() {
    limited("few_descriptors");
    limited("few_descriptors_over_tcp");
}

#[test]
fn little_memory_is_an_error_that_says_so_and_harms_nothing() {
    limited("little_memory");
}
