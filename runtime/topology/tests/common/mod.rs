//! Made-up trees in the form of `/sys`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A tree that goes away with the test.
pub struct Tree(TempDir);

impl Tree {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, path: &str, text: &str) {
        let path = self.made(path);
        fs::write(path, text).unwrap();
    }

    pub fn folder(&self, path: &str) {
        fs::create_dir_all(self.root().join(path)).unwrap();
    }

    /// A link at `path` to `target`, which starts at the root.
    pub fn link(&self, path: &str, target: &str) {
        let up = "../".repeat(path.split('/').count() - 1);
        symlink(format!("{up}{target}"), self.made(path)).unwrap();
    }

    fn made(&self, path: &str) -> PathBuf {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    pub fn node(&self, number: u32, cpus: &str, distances: &str) {
        let node = format!("devices/system/node/node{number}");
        self.file(&format!("{node}/cpulist"), cpus);
        self.file(&format!("{node}/distance"), distances);
        let meminfo = format!("Node {number} MemTotal:  1048576 kB\nNode {number} MemFree: 9 kB\n");
        self.file(&format!("{node}/meminfo"), &meminfo);
    }

    /// A PCI function at `way` below `/sys/devices`.
    pub fn function(&self, way: &str, class: &str, ids: (&str, &str), node: i32) -> String {
        let folder = format!("devices/{way}");
        self.file(&format!("{folder}/class"), class);
        self.file(&format!("{folder}/vendor"), ids.0);
        self.file(&format!("{folder}/device"), ids.1);
        self.file(&format!("{folder}/numa_node"), &node.to_string());
        let address = way.rsplit('/').next().unwrap();
        self.link(&format!("bus/pci/devices/{address}"), &folder);
        folder
    }

    /// An entry of a class whose hardware is `folder`.
    pub fn class(&self, class: &str, name: &str, folder: &str) {
        let kind = class.rsplit('/').next().unwrap();
        let own = format!("{folder}/{kind}/{name}");
        self.folder(&own);
        self.link(&format!("{class}/{name}"), &own);
        self.link(&format!("{own}/device"), folder);
    }

    /// A server with two NUMA nodes, on each a PCI switch with two GPUs and a ConnectX of two
    /// ports; the second node has a DMA engine, and a network adapter of its own host bridge.
    pub fn server() -> Self {
        let tree = Self::new();
        tree.node(0, "0-31,64-95", "10 21");
        tree.node(1, "32-63,96-127", "21 10");
        tree.file("devices/system/cpu/online", "0-127");
        for cpu in 0..128 {
            let package = u32::from(cpu % 64 >= 32).to_string();
            tree.file(
                &format!("devices/system/cpu/cpu{cpu}/topology/physical_package_id"),
                &package,
            );
        }
        tree.folder("devices/system/cpu/cpufreq");
        for (node, bus) in [(0, 0x10), (1, 0x80)] {
            let root = format!("pci0000:{bus:02x}/0000:{bus:02x}:00.0/0000:{:02x}:00.0", bus + 1);
            let port = |i: u32| format!("{root}/0000:{:02x}:{i:02x}.0", bus + 2);
            let below = |i: u32, function: u32| {
                format!("{}/0000:{:02x}:00.{function}", port(i), bus + 3 + i)
            };
            for i in 0..2 {
                let gpu = tree.function(&below(i, 0), "0x030200", ("0x10de", "0x2335"), node);
                tree.file(&format!("{gpu}/current_link_speed"), "32.0 GT/s PCIe\n");
                tree.file(&format!("{gpu}/current_link_width"), "16\n");
                tree.folder("bus/pci/drivers/nvidia");
                tree.link(&format!("{gpu}/driver"), "bus/pci/drivers/nvidia");
            }
            for function in 0..2 {
                let way = below(2, function);
                let nic = tree.function(&way, "0x020000", ("0x15b3", "0x1021"), node);
                let number = node * 2 + function as i32;
                tree.class("class/infiniband", &format!("mlx5_{number}"), &nic);
                tree.class("class/net", &format!("ens{number}np{function}"), &nic);
            }
        }
        let dma = tree.function("pci0000:f0/0000:f0:01.0", "0x088000", ("0x8086", "0x0b25"), 1);
        for channel in 0..4 {
            tree.class("class/dma", &format!("dma0chan{channel}"), &dma);
            let in_use = format!("class/dma/dma0chan{channel}/in_use");
            tree.file(&in_use, if channel == 0 { "1\n" } else { "0\n" });
        }
        let plain = tree.function(
            "pci0000:f8/0000:f8:00.0/0000:f9:00.0",
            "0x020000",
            ("0x8086", "0x1563"),
            1,
        );
        tree.class("class/net", "eno1", &plain);
        tree.function("pci0000:f8/0000:f8:01.0", "0x030000", ("0x1a03", "0x2000"), 1);
        tree.folder("devices/virtual/net/lo");
        tree.link("class/net/lo", "devices/virtual/net/lo");
        tree.folder("devices/virtual/misc/dma_device");
        tree.link("class/misc/dma_device", "devices/virtual/misc/dma_device");
        tree
    }
}
