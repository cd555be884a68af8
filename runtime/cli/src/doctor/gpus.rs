//! GPUs, their driver, and whether they can reach one another. Nothing of CUDA is called.

use std::path::{Path, PathBuf};

use stepccl_topology::{Device, Distance, Kind};

use super::finding::Finding;
use super::scene::Scene;

const LIBRARY: &str = "libcuda.so.1";
/// Where drivers put their library.
const FOLDERS: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/cuda/compat",
    "/usr/lib/wsl/lib",
];

pub(super) fn check(scene: &Scene) -> Finding {
    let machine = scene.machine();
    let is_gpu = |device: &&Device| matches!(device.kind, Kind::Gpu { .. });
    let gpus: Vec<&Device> = machine.devices.iter().filter(is_gpu).collect();
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FOLDERS.map(PathBuf::from));
    let library = folders.map(|folder| folder.join(LIBRARY)).find(|library| library.exists());
    let translated = gpus.iter().any(|gpu| {
        let address = gpu.address().map(|a| a.to_string()).unwrap_or_default();
        let kind = scene.sys(&format!("bus/pci/devices/{address}/iommu_group/type"));
        kind.is_some_and(|kind| kind.starts_with("DMA"))
    });
    judge(&gpus, library.as_deref(), translated)
}

fn judge(gpus: &[&Device], library: Option<&Path>, translated: bool) -> Finding {
    let Some(first) = gpus.first() else { return Finding::not_here("no GPU") };
    let nvidia = gpus.iter().any(|gpu| matches!(gpu.kind, Kind::Gpu { maker: Some("NVIDIA"), .. }));
    let driver = first.driver.as_deref().unwrap_or("none");
    let mut fact = format!("{} GPUs, driver {driver}", gpus.len());
    if let Some((near, far)) = span(gpus) {
        fact += &format!(", between them {near} to {far}");
    }
    if let Some(gpu) = gpus.iter().find(|gpu| gpu.driver.is_none()) {
        let fix = if nvidia { "sudo modprobe nvidia" } else { "sudo modprobe amdgpu" };
        return Finding::fail(format!("{fact}; {} has no driver", gpu.label), fix);
    }
    if nvidia {
        match library {
            Some(library) => fact += &format!(", {}", library.display()),
            None => {
                return Finding::fail(
                    format!("{fact}; no {LIBRARY}"),
                    "sudo apt-get install libcuda1  # of the driver's version; docker: --gpus all",
                );
            }
        }
    }
    if translated && gpus.len() > 1 {
        return Finding::warn(
            format!(
                "{fact}; the IOMMU translates: GPUs reach one another through it, slowly or not at all"
            ),
            "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub && sudo update-grub  # then start again",
        );
    }
    Finding::ok(fact)
}

/// The shortest and the longest way between two of them.
fn span(gpus: &[&Device]) -> Option<(Distance, Distance)> {
    let pairs = gpus
        .iter()
        .enumerate()
        .flat_map(|(i, a)| gpus.iter().skip(i + 1).map(|b| Distance::between(&a.place, &b.place)));
    let all: Vec<Distance> = pairs.collect();
    Some((all.iter().min().copied()?, all.iter().max().copied()?))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    fn gpu(driver: Option<&str>) -> Device {
        let (scene, _folder) = Scene::made_up();
        scene.write("sys/devices/pci0000:00/0000:00:05.0/class", "0x030200");
        scene.write("sys/devices/pci0000:00/0000:00:05.0/vendor", "0x10de");
        std::fs::create_dir_all(scene.sys.join("bus/pci/devices")).unwrap();
        let link = scene.sys.join("bus/pci/devices/0000:00:05.0");
        std::os::unix::fs::symlink("../../../devices/pci0000:00/0000:00:05.0", link).unwrap();
        let found = scene.machine().devices.remove(0);
        Device { driver: driver.map(str::to_owned), ..found }
    }

    #[test]
    fn each_thing_that_lacks_has_its_fix() {
        assert_eq!(judge(&[], None, false).verdict, Verdict::NotHere);
        let (good, bare) = (gpu(Some("nvidia")), gpu(None));
        let library = Some(Path::new("/usr/lib64/libcuda.so.1"));
        assert_eq!(judge(&[&good], library, true).verdict, Verdict::Ok);
        assert!(judge(&[&good, &bare], library, false).fix.unwrap().contains("modprobe nvidia"));
        assert!(judge(&[&good], None, false).fact.contains("no libcuda"));
        let slow = judge(&[&good, &good], library, true);
        assert_eq!(slow.verdict, Verdict::Warn);
        assert!(slow.fact.contains("SELF to SELF") && slow.fix.unwrap().contains("iommu=pt"));
    }
}
