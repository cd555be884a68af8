//! `/dev/dma_device`: the module, and whether this user may open it.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

use nix::fcntl::OFlag;

use super::finding::Finding;
use super::scene::Scene;

pub(super) fn check(scene: &Scene) -> Finding {
    let loaded = scene.sys.join("module/dma_engine").is_dir();
    let path = scene.dev.join("dma_device");
    let Ok(found) = path.metadata() else { return missing(loaded) };
    if !found.file_type().is_char_device() {
        return Finding::fail(
            "/dev/dma_device is no device",
            "sudo rm /dev/dma_device && sudo modprobe -r dma_engine && sudo modprobe dma_engine",
        );
    }
    let flags = (OFlag::O_NONBLOCK | OFlag::O_CLOEXEC).bits();
    match OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path) {
        Ok(_) => Finding::ok("/dev/dma_device can be opened; this build has no client for it"),
        Err(error) => refused(&error),
    }
}

fn missing(loaded: bool) -> Finding {
    if loaded {
        return Finding::fail(
            "module dma_engine is loaded, and there is no /dev/dma_device",
            "sudo udevadm trigger --subsystem-match=misc  # in a container: --device /dev/dma_device",
        );
    }
    Finding::not_here("no /dev/dma_device; threads move the bytes")
        .with_fix("sudo modprobe dma_engine  # where the module is installed")
}

fn refused(error: &std::io::Error) -> Finding {
    let fact = format!("/dev/dma_device cannot be opened: {error}");
    match error.kind() {
        ErrorKind::PermissionDenied => {
            Finding::fail(fact, "sudo setfacl -m u:$USER:rw /dev/dma_device")
        }
        _ => Finding::fail(fact, "sudo dmesg | grep -i dma_engine | tail"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn a_module_without_a_device_is_a_fault() {
        let (scene, _folder) = Scene::made_up();
        assert_eq!(check(&scene).verdict, Verdict::NotHere);
        std::fs::create_dir_all(scene.sys.join("module/dma_engine")).unwrap();
        assert_eq!(check(&scene).verdict, Verdict::Fail);
    }

    #[test]
    fn what_lies_there_must_be_a_device_that_opens() {
        let (scene, _folder) = Scene::made_up();
        scene.write("dev/dma_device", "");
        assert_eq!(check(&scene).verdict, Verdict::Fail);
        std::fs::remove_file(scene.dev.join("dma_device")).unwrap();
        std::os::unix::fs::symlink("/dev/null", scene.dev.join("dma_device")).unwrap();
        assert_eq!(check(&scene).verdict, Verdict::Ok);
        let denied = refused(&std::io::Error::from(ErrorKind::PermissionDenied));
        assert!(denied.fix.unwrap().contains("setfacl"));
    }
}
