//! Processors that this process may use, against ranks: a rank that waits keeps one busy.

use std::path::{Path, PathBuf};

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use super::finding::Finding;
use super::scene::Scene;

pub(super) fn check(scene: &Scene) -> Finding {
    let allowed = match sched_getaffinity(Pid::from_raw(0)) {
        Ok(set) => (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).count(),
        Err(error) => return Finding::fail(format!("not told: {error}"), "taskset -p $$"),
    };
    judge(allowed, scene.machine().cpus.count().max(allowed), quota(scene), scene.ranks)
}

/// Processors' worth of time that the control groups allow; the smallest limit of the group of
/// this process and of those above it. None: no limit.
fn quota(scene: &Scene) -> Option<f64> {
    let groups = scene.proc("self/cgroup")?;
    let root = scene.sys.join("fs/cgroup");
    let limits = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, kinds, path) = (parts.next(), parts.next(), parts.next());
        let (kinds, path) = (kinds.unwrap_or(""), path.unwrap_or("/"));
        let below = path.trim_start_matches('/');
        if kinds.is_empty() {
            up_from(&root, below).filter_map(|folder| second(&folder)).collect::<Vec<_>>()
        } else if kinds.split(',').any(|kind| kind == "cpu") {
            // Mounted under the name of its kinds, or of the one alone.
            [root.join(kinds), root.join("cpu")]
                .iter()
                .flat_map(|mount| up_from(mount, below).filter_map(|folder| first(&folder)))
                .collect()
        } else {
            Vec::new()
        }
    });
    limits.filter(|limit| limit.is_finite() && *limit > 0.0).reduce(f64::min)
}

/// The folder of a group and those above it, up to the mount.
fn up_from<'a>(mount: &'a Path, below: &str) -> impl Iterator<Item = PathBuf> + use<'a> {
    let folders: Vec<PathBuf> = mount
        .join(below)
        .ancestors()
        .take_while(|folder| folder.starts_with(mount))
        .map(Path::to_owned)
        .collect();
    folders.into_iter()
}

/// The limit of a group of version 2: `max 100000` or `150000 100000`.
fn second(folder: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(folder.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
}

/// The limit of a group of version 1, where -1 is none.
fn first(folder: &Path) -> Option<f64> {
    let number = |file: &str| {
        let text = std::fs::read_to_string(folder.join(file)).ok()?;
        text.trim().parse::<f64>().ok()
    };
    Some(number("cpu.cfs_quota_us")? / number("cpu.cfs_period_us")?)
}

fn judge(allowed: usize, online: usize, quota: Option<f64>, ranks: u32) -> Finding {
    let quota_text =
        quota.map_or(String::new(), |q| format!(", time of {q:.1} by the control group"));
    let fact = format!("{allowed} of {online}{quota_text}, for {ranks} ranks");
    if allowed < ranks as usize {
        let fix = if online >= ranks as usize {
            "taskset -pc 0-1023 $$  # or fewer ranks; docker: --cpuset-cpus"
        } else {
            "nproc  # start no more ranks than it says"
        };
        return Finding::warn(format!("{fact}: they take turns, which is many times slower"), fix);
    }
    if quota.is_some_and(|quota| quota < f64::from(ranks)) {
        return Finding::warn(
            format!("{fact}: ranks are stopped in the middle when the time is used up"),
            "docker update --cpus=0 CONTAINER  # systemd: CPUQuota=; or fewer ranks",
        );
    }
    Finding::ok(fact)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn ranks_need_a_processor_each() {
        assert_eq!(judge(8, 8, None, 8).verdict, Verdict::Ok);
        assert!(judge(2, 8, None, 8).fix.unwrap().contains("taskset"));
        assert!(judge(2, 2, None, 8).fix.unwrap().contains("nproc"));
        assert!(judge(8, 8, Some(1.5), 2).fact.contains("1.5"));
        assert_eq!(judge(8, 8, Some(1.5), 2).verdict, Verdict::Warn);
        assert_eq!(judge(8, 8, Some(2.0), 2).verdict, Verdict::Ok);
    }

    #[test]
    fn the_smallest_limit_of_both_versions_counts() {
        let (scene, _folder) = Scene::made_up();
        assert_eq!(quota(&scene), None);
        scene.write("proc/self/cgroup", "4:cpu,cpuacct:/job\n0::/a/b\n");
        assert_eq!(quota(&scene), None);
        scene.write("sys/fs/cgroup/a/cpu.max", "300000 100000\n");
        scene.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
        assert_eq!(quota(&scene), Some(3.0));
        scene.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
        scene.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
        assert_eq!(quota(&scene), Some(3.0));
        scene.write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000");
        scene.write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000");
        assert_eq!(quota(&scene), Some(0.5));
        scene.write("sys/fs/cgroup/a/b/cpu.max", "1 0");
        scene.write("proc/self/cgroup", "x\n::::\n0::/../../etc\n");
        assert_eq!(quota(&scene), None);
    }
}
