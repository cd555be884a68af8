//! Everything that was found.

use std::collections::BTreeMap;
use std::path::Path;

use crate::node::{list, nodes};
use crate::sysfs::Sysfs;
use crate::{Cpus, Device, Distance, Kind, Node, PciPath, Place};

/// Most devices of one kind; those behind are left out.
const MOST_DEVICES: usize = 256;

/// Makers of GPUs. Other display adapters, as those of management controllers, only show text.
const MAKERS: [(i64, &str); 3] = [(0x10de, "NVIDIA"), (0x1002, "AMD"), (0x8086, "Intel")];

/// What a machine is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Its NUMA nodes, by number.
    pub nodes: Vec<Node>,
    /// Processors in use.
    pub cpus: Cpus,
    /// Processor packages (sockets); 0 where that is not known.
    pub packages: usize,
    /// GPUs, then network adapters, then DMA engines, each in the order of their PCI addresses.
    pub devices: Vec<Device>,
    /// Whether the kernel has `/dev/dma_device`.
    pub dma_device: bool,
}

impl Machine {
    /// What the tree at `root` says, which is `/sys` or a copy of it. Bounded in time and memory;
    /// what is missing or makes no sense there is left out, so an empty tree is an empty machine.
    #[must_use]
    pub fn read(root: &Path) -> Self {
        let Some(sysfs) = Sysfs::open(root) else { return Self::default() };
        let nodes = nodes(&sysfs);
        let reader = Reader { sysfs: &sysfs, nodes: &nodes };
        let mut devices = reader.gpus();
        devices.extend(reader.nics());
        devices.extend(reader.engines());
        Self {
            devices,
            cpus: list(&sysfs, "devices/system/cpu/online").unwrap_or_default(),
            packages: packages(&sysfs),
            dma_device: sysfs.exists("class/misc/dma_device"),
            nodes,
        }
    }

    /// The device nearest to `from` among those that `wanted` takes, and how far it is; the first
    /// of several that are equally near.
    #[must_use]
    pub fn nearest(
        &self,
        from: &Place,
        wanted: impl Fn(&Device) -> bool,
    ) -> Option<(&Device, Distance)> {
        let found = self.devices.iter().filter(|device| wanted(device));
        found
            .map(|device| (device, Distance::between(from, &device.place)))
            .min_by_key(|(_, distance)| *distance)
    }
}

/// Sockets: different package numbers of processors.
fn packages(sysfs: &Sysfs) -> usize {
    let folder = "devices/system/cpu";
    let is_cpu = |name: &&String| {
        name.strip_prefix("cpu").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
    };
    let mut ids: Vec<i64> = sysfs
        .names(folder)
        .iter()
        .filter(is_cpu)
        .filter_map(|cpu| sysfs.number(&format!("{folder}/{cpu}/topology/physical_package_id")))
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids.len()
}

struct Reader<'a> {
    sysfs: &'a Sysfs,
    nodes: &'a [Node],
}

impl Reader<'_> {
    fn gpus(&self) -> Vec<Device> {
        let mut found = Vec::new();
        for name in self.sysfs.names("bus/pci/devices") {
            let Some(folder) = self.sysfs.resolve(&format!("bus/pci/devices/{name}")) else {
                continue;
            };
            let number = |file: &str| self.sysfs.number(&format!("{folder}/{file}"));
            let (Some(class), Some(vendor)) = (number("class"), number("vendor")) else { continue };
            let maker = MAKERS.iter().find(|(id, _)| *id == vendor).map(|(_, name)| *name);
            let is_gpu = match class >> 8 {
                // Display controllers: VGA, 3D, other.
                0x0300 | 0x0302 | 0x0380 => maker.is_some(),
                // Processing accelerators.
                0x1200 => true,
                _ => false,
            };
            if is_gpu {
                let model = number("device").unwrap_or(0);
                let numbers = (vendor as u16, model as u16);
                found.push((folder, Kind::Gpu { maker, numbers }));
            }
        }
        self.devices("GPU", found)
    }

    fn nics(&self) -> Vec<Device> {
        // One PCI function may have several names.
        let mut found: BTreeMap<String, (Vec<String>, Vec<String>)> = BTreeMap::new();
        for name in self.sysfs.names("class/infiniband") {
            if let Some(folder) = self.device_of("class/infiniband", &name) {
                found.entry(folder).or_default().0.push(name);
            }
        }
        for name in self.sysfs.names("class/net") {
            if let Some(folder) = self.device_of("class/net", &name) {
                found.entry(folder).or_default().1.push(name);
            }
        }
        let nic = |(folder, (rdma, interfaces))| (folder, Kind::Nic { rdma, interfaces });
        self.devices("NIC", found.into_iter().map(nic).collect())
    }

    fn engines(&self) -> Vec<Device> {
        let mut found: BTreeMap<String, (u32, u32)> = BTreeMap::new();
        for name in self.sysfs.names("class/dma") {
            if let Some(folder) = self.device_of("class/dma", &name) {
                let users = self.sysfs.number(&format!("class/dma/{name}/in_use")).unwrap_or(0);
                let entry = found.entry(folder).or_default();
                entry.0 += 1;
                entry.1 += u32::from(users > 0);
            }
        }
        let engine = |(folder, (channels, in_use))| (folder, Kind::Dma { channels, in_use });
        self.devices("DMA", found.into_iter().map(engine).collect())
    }

    /// The folder of the hardware behind an entry of a class; `None` for what is only software.
    fn device_of(&self, class: &str, name: &str) -> Option<String> {
        let folder = self.sysfs.resolve(&format!("{class}/{name}/device"))?;
        (!folder.starts_with("devices/virtual/")).then(|| function_folder(&folder))
    }

    fn devices(&self, label: &str, mut found: Vec<(String, Kind)>) -> Vec<Device> {
        let address = |folder: &str| PciPath::parse(folder).and_then(|path| path.function());
        found.sort_by_key(|(folder, _)| (address(folder).is_none(), address(folder)));
        found.truncate(MOST_DEVICES);
        let device = |(i, (folder, kind)): (usize, (String, Kind))| {
            self.device(format!("{label}{i}"), &folder, kind)
        };
        found.into_iter().enumerate().map(device).collect()
    }

    fn device(&self, label: String, folder: &str, kind: Kind) -> Device {
        let file = |name: &str| format!("{folder}/{name}");
        let stated = self.sysfs.number(&file("numa_node")).and_then(|n| u32::try_from(n).ok());
        let only = if let [node] = self.nodes { Some(node.number) } else { None };
        let node = stated.filter(|n| self.nodes.iter().any(|node| node.number == *n)).or(only);
        let of_node = || self.nodes.iter().find(|n| Some(n.number) == node).map(|n| &n.cpus);
        let near = list(self.sysfs, &file("local_cpulist")).filter(|cpus| !cpus.is_empty());
        let driver = self.sysfs.resolve(&file("driver"));
        let speed = self.sysfs.text(&file("current_link_speed"));
        let width = self.sysfs.text(&file("current_link_width"));
        let link = speed.zip(width).map(|(speed, width)| format!("{speed} x{width}"));
        Device {
            label,
            kind,
            cpus: near.or_else(|| of_node().cloned()).unwrap_or_default(),
            driver: driver
                .and_then(|path| path.rsplit('/').next().map(str::to_owned))
                .filter(|name| name.bytes().all(|b| b.is_ascii_graphic())),
            link: link.filter(|link| link.len() < 64 && !link.contains(char::is_control)),
            place: Place { pci: PciPath::parse(folder), node },
        }
    }
}

/// The folder of the PCI function that `folder` is in: what a virtio device lies below. A folder
/// that is not on PCI is its own.
fn function_folder(folder: &str) -> String {
    let parts: Vec<&str> = folder.split('/').collect();
    let is_address = |part: &&str| part.parse::<crate::Address>().is_ok();
    match parts.iter().rposition(is_address) {
        Some(last) => parts.iter().take(last + 1).copied().collect::<Vec<_>>().join("/"),
        None => folder.to_owned(),
    }
}
