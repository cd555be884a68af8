//! Sealed shared memory, which every communicator lives in; tried with the library's own code.

use nix::errno::Errno;
use nix::unistd::ftruncate;
use stepccl_memory::{MemoryError, Segment};

use super::finding::Finding;
use super::scene::Scene;

/// Staging of a communicator of two ranks.
const BYTES: usize = 8 << 20;
const WORD: u64 = 0x5354_4550_4343_4c00;

pub(super) fn check(scene: &Scene) -> Finding {
    let noexec = scene.proc("sys/vm/memfd_noexec");
    match attempt() {
        Ok(true) => Finding::ok(format!(
            "{} mapped twice, sealed, and cannot be cut short",
            stepccl_plan::format_bytes(BYTES as u64)
        )),
        Ok(false) => Finding::fail(
            "seals of shared memory do not hold: a peer could cut it short",
            "uname -r  # needs a kernel whose memfd has seals",
        ),
        Err(error) => failed(&error.to_string(), noexec.as_deref()),
    }
}

fn failed(error: &str, noexec: Option<&str>) -> Finding {
    let fix = match noexec {
        Some("2") => "sudo sysctl vm.memfd_noexec=1",
        _ => "ulimit -n; free -m  # or a seccomp profile that allows memfd_create",
    };
    Finding::fail(format!("no shared memory: {error}"), fix)
}

/// Whether memory written here is read through a second mapping, and its length is final.
fn attempt() -> Result<bool, MemoryError> {
    let segment = Segment::create("stepccl-doctor", BYTES)?;
    let last = BYTES - 8;
    segment.view().write_u64(last, WORD)?;
    let second = segment.try_clone()?;
    let same = second.view().read_u64(last)? == WORD;
    Ok(same && ftruncate(segment.fd(), 0) == Err(Errno::EPERM))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn it_works_here_and_a_refusal_has_a_fix() {
        let (scene, _folder) = Scene::made_up();
        assert_eq!(check(&scene).verdict, Verdict::Ok);
        assert!(failed("x", Some("2")).fix.unwrap().contains("memfd_noexec=1"));
        assert!(failed("x", None).fix.unwrap().contains("seccomp"));
    }
}
