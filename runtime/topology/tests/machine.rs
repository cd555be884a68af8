//! What is read from made-up trees, and from the one of this machine.

mod common;

use std::path::Path;

use common::Tree;
use stepccl_topology::{Device, Distance, Kind, Machine, Place};

fn labels(machine: &Machine) -> Vec<&str> {
    machine.devices.iter().map(|device| device.label.as_str()).collect()
}

fn device<'a>(machine: &'a Machine, label: &str) -> &'a Device {
    machine.devices.iter().find(|device| device.label == label).unwrap()
}

#[test]
fn a_server_is_read_whole() {
    let tree = Tree::server();
    let machine = Machine::read(tree.root());
    assert_eq!((machine.packages, machine.cpus.count(), machine.dma_device), (2, 128, true));
    let nodes: Vec<_> = machine.nodes.iter().map(|n| (n.number, n.distances.clone())).collect();
    assert_eq!(nodes, [(0, vec![10, 21]), (1, vec![21, 10])]);
    assert_eq!(machine.nodes[0].memory_bytes, Some(1 << 30));
    assert_eq!(
        labels(&machine),
        ["GPU0", "GPU1", "GPU2", "GPU3", "NIC0", "NIC1", "NIC2", "NIC3", "NIC4", "DMA0"]
    );
    let gpu = device(&machine, "GPU2");
    assert_eq!(gpu.kind, Kind::Gpu { maker: Some("NVIDIA"), numbers: (0x10de, 0x2335) });
    assert_eq!((gpu.place.node, gpu.cpus.to_string().as_str()), (Some(1), "32-63,96-127"));
    assert_eq!(gpu.address().unwrap().to_string(), "0000:83:00.0");
    assert_eq!(
        (gpu.driver.as_deref(), gpu.link.as_deref()),
        (Some("nvidia"), Some("32.0 GT/s PCIe x16"))
    );
    let nic = Kind::Nic { rdma: vec!["mlx5_1".into()], interfaces: vec!["ens1np1".into()] };
    assert_eq!(device(&machine, "NIC1").kind, nic);
    assert_eq!(device(&machine, "DMA0").kind, Kind::Dma { channels: 4, in_use: 1 });
}

#[test]
fn distances_of_a_server_are_those_of_its_switches() {
    let machine = Machine::read(Tree::server().root());
    let between = |a, b| Distance::between(&device(&machine, a).place, &device(&machine, b).place);
    for (a, b, distance) in [
        ("GPU0", "GPU0", Distance::Same),
        ("GPU0", "GPU1", Distance::OneBridge),
        ("GPU0", "NIC0", Distance::OneBridge),
        ("NIC0", "NIC1", Distance::OneBridge),
        ("GPU0", "GPU2", Distance::System),
        ("GPU3", "NIC4", Distance::Node),
        ("NIC4", "DMA0", Distance::Node),
        ("NIC0", "DMA0", Distance::System),
    ] {
        assert_eq!((between(a, b), between(b, a)), (distance, distance), "{a} {b}");
    }
    let is_nic = |device: &Device| matches!(device.kind, Kind::Nic { .. });
    let (near, distance) = machine.nearest(&device(&machine, "GPU3").place, is_nic).unwrap();
    assert_eq!((near.label.as_str(), distance), ("NIC2", Distance::OneBridge));
    assert!(machine.nearest(&Place::default(), |_| false).is_none());
}

#[test]
fn an_empty_tree_is_an_empty_machine() {
    assert_eq!(Machine::read(Tree::new().root()), Machine::default());
    assert_eq!(Machine::read(Path::new("/nonexistent/tree")), Machine::default());
}

#[test]
fn a_kernel_without_nodes_has_one() {
    let tree = Tree::new();
    tree.file("devices/system/cpu/online", "0-3\n");
    let nic = tree.function("pci0000:00/0000:00:03.0", "0x020000", ("0x1af4", "0x1041"), -1);
    // A virtio adapter has a device of its own below the function.
    tree.class("class/net", "eth0", &format!("{nic}/virtio2"));
    let machine = Machine::read(tree.root());
    assert_eq!(machine.nodes.len(), 1);
    let nic = device(&machine, "NIC0");
    assert_eq!(nic.address().unwrap().to_string(), "0000:00:03.0");
    assert_eq!((nic.place.node, nic.cpus.count()), (Some(0), 4));
}

#[test]
fn devices_off_pci_have_a_node_alone() {
    let tree = Tree::new();
    tree.node(0, "0-3", "10");
    tree.folder("devices/platform/soc/dma");
    tree.class("class/dma", "dma0chan0", "devices/platform/soc/dma");
    let machine = Machine::read(tree.root());
    let dma = device(&machine, "DMA0");
    assert_eq!((dma.address(), dma.place.node), (None, Some(0)));
}

#[test]
fn hostile_content_is_left_out() {
    let tree = Tree::new();
    tree.node(0, "0-4294967295", "10 far");
    tree.file("devices/system/node/node99999999999/cpulist", "0");
    tree.file("devices/system/node/node1/cpulist", &"0-1,".repeat(10_000));
    tree.file("devices/system/node/node1/meminfo", "Node 1 MemTotal: 18446744073709551615 kB");
    tree.file("devices/system/cpu/online", "\u{1b}[2J");
    let nic = tree.function("pci0000:00/0000:00:03.0", "0x020000", ("0x1", "0x2"), i32::MAX);
    tree.class("class/net", "eth0", &nic);
    tree.class("class/net", "red\u{1b}[31m", &nic);
    tree.class("class/net", &"x".repeat(200), &nic);
    tree.file(&format!("{nic}/current_link_speed"), "\u{1b}[2J\u{7}");
    tree.file(&format!("{nic}/current_link_width"), "16");
    tree.link(&format!("{nic}/driver"), "../../../../../../etc");
    // Out of the tree, in a circle, to nothing.
    tree.folder("class/net/out");
    std::os::unix::fs::symlink("/etc", tree.root().join("class/net/out/device")).unwrap();
    tree.link("class/net/circle", "class/net/circle");
    tree.link("class/infiniband/gone", "devices/none");
    let odd = tree.function("pci0000:00/0000:00:04.0", "0xffffffffffffffffffff", ("0x10de", ""), 0);
    tree.file(&format!("{odd}/vendor"), "\0\0");
    let gpu = tree.function("pci0000:00/0000:00:05.0", "0x030000", ("0x10de", "-1"), -7);
    pipe(&tree.root().join(format!("{gpu}/current_link_speed")));
    tree.file(&format!("{gpu}/current_link_width"), "16");

    let machine = Machine::read(tree.root());
    assert_eq!(labels(&machine), ["GPU0", "NIC0"]);
    let numbers: Vec<_> = machine.nodes.iter().map(|node| node.number).collect();
    assert_eq!(numbers, [0, 1]);
    assert!(machine.nodes[0].cpus.is_empty() && machine.nodes[0].distances.is_empty());
    assert_eq!(machine.nodes[1].memory_bytes, None);
    let nic = device(&machine, "NIC0");
    let kind = Kind::Nic { rdma: Vec::new(), interfaces: vec!["eth0".to_owned()] };
    assert_eq!((&nic.kind, nic.place.node), (&kind, None));
    assert_eq!((&nic.driver, &nic.link), (&None, &None));
    assert_eq!(device(&machine, "GPU0").link, None, "a pipe is not waited for");
    assert!(!format!("{machine:?}").contains('\u{1b}'));
}

/// A named pipe that nobody writes to.
fn pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_tree_with_thousands_of_devices_is_cut() {
    let tree = Tree::new();
    for i in 0..400 {
        let (bus, device) = (i / 32, i % 32);
        let way = format!("pci0000:{bus:02x}/0000:{bus:02x}:{device:02x}.0");
        tree.function(&way, "0x120000", ("0x1002", "0x74a1"), 0);
    }
    assert_eq!(Machine::read(tree.root()).devices.len(), 256);
}

#[test]
fn this_machine_has_processors() {
    if !Path::new("/sys/devices/system/cpu/online").exists() {
        eprintln!("skipped: no /sys here");
        return;
    }
    let machine = Machine::read(Path::new("/sys"));
    assert!(!machine.cpus.is_empty() && !machine.nodes.is_empty(), "{machine:?}");
}
