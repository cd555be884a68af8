//! The size of `/dev/shm`. StepCCL has no file there, but loaders of data have.

use nix::sys::statvfs::statvfs;

use super::finding::Finding;
use super::scene::Scene;

/// Containers have 64 MiB unless told otherwise, which loaders of data fill at once.
const ENOUGH: u64 = 512 << 20;

pub(super) fn check(scene: &Scene) -> Finding {
    match statvfs(&scene.dev.join("shm")) {
        Ok(found) => {
            let unit = found.fragment_size();
            judge(found.blocks() * unit, found.blocks_available() * unit)
        }
        Err(error) => Finding::not_here(format!("{error}; StepCCL does not need it"))
            .with_fix("sudo mkdir -p /dev/shm && sudo mount -t tmpfs tmpfs /dev/shm"),
    }
}

fn judge(size: u64, free: u64) -> Finding {
    let shown = stepccl_plan::format_bytes;
    let fact = format!("{} of {} free", shown(free), shown(size));
    if free >= ENOUGH {
        return Finding::ok(fact);
    }
    let fix = if size >= 2 * ENOUGH {
        "ls -lS /dev/shm | head  # remove what dead programs left"
    } else {
        "sudo mount -o remount,size=8G /dev/shm  # docker: --shm-size=8g"
    };
    Finding::warn(format!("{fact}: enough for StepCCL, little for torch's data loaders"), fix)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn little_room_has_the_fix_that_fits() {
        assert_eq!(judge(8 << 30, 8 << 30).verdict, Verdict::Ok);
        assert!(judge(64 << 20, 64 << 20).fix.unwrap().contains("--shm-size"));
        assert!(judge(8 << 30, 1 << 20).fix.unwrap().contains("ls"));
        let (scene, _folder) = Scene::made_up();
        assert_eq!(check(&scene).verdict, Verdict::NotHere);
    }
}
