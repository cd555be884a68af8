//! Open files that a process may have, against those that a rank needs.

use nix::sys::resource::{Resource, getrlimit};

use super::finding::Finding;
use super::scene::Scene;
use crate::bench::files_needed;

pub(super) fn check(scene: &Scene) -> Finding {
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, hard)) => judge(soft, hard, scene.ranks),
        Err(error) => Finding::fail(format!("the limit is not told: {error}"), "ulimit -n"),
    }
}

fn judge(soft: u64, hard: u64, ranks: u32) -> Finding {
    let needed = files_needed(ranks);
    let fact = format!("{soft} a process, and a rank of {ranks} needs about {needed}");
    if soft >= needed {
        Finding::ok(fact)
    } else if hard >= needed {
        Finding::fail(fact, format!("ulimit -n {hard}"))
    } else {
        Finding::fail(
            format!("{fact} (at most {hard})"),
            "echo '* - nofile 65536' | sudo tee /etc/security/limits.d/stepccl-files.conf  # then log in again; docker: --ulimit nofile=65536",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn many_ranks_need_many_files() {
        assert_eq!(judge(1024, 4096, 2).verdict, Verdict::Ok);
        let raise = judge(1024, 65536, 1024);
        assert_eq!((raise.verdict, raise.fix.as_deref()), (Verdict::Fail, Some("ulimit -n 65536")));
        assert!(judge(64, 64, 8).fix.unwrap().contains("limits.d"));
    }
}
