//! How far two places are from one another.

use std::fmt;

use crate::{PciPath, Place};

/// What lies between two places, from nearest to farthest; the words are those of
/// `nvidia-smi topo -m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distance {
    /// Nothing: they are the same.
    Same,
    /// At most one PCI bridge or switch.
    OneBridge,
    /// Several PCI bridges or switches, and no host bridge.
    Bridges,
    /// A PCI host bridge: the processor.
    HostBridge,
    /// What joins the host bridges of a NUMA node.
    Node,
    /// What joins NUMA nodes; also where nothing nearer is known.
    System,
}

impl Distance {
    /// Every distance, from nearest to farthest.
    pub const ALL: [Self; 6] =
        [Self::Same, Self::OneBridge, Self::Bridges, Self::HostBridge, Self::Node, Self::System];

    /// Its short name, at most 4 letters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "SELF",
            Self::OneBridge => "PIX",
            Self::Bridges => "PXB",
            Self::HostBridge => "PHB",
            Self::Node => "NODE",
            Self::System => "SYS",
        }
    }

    /// What it means, in a line.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Same => "the same device",
            Self::OneBridge => "at most one PCI bridge or switch between them",
            Self::Bridges => "several PCI bridges or switches, without the processor",
            Self::HostBridge => "through a PCI host bridge, which is in the processor",
            Self::Node => "through what joins the host bridges of a NUMA node",
            Self::System => "through what joins NUMA nodes, or nothing nearer is known",
        }
    }

    /// What lies between `a` and `b`.
    ///
    /// A NUMA node, which has no way in the PCI tree, is a host bridge away from the devices that
    /// belong to it.
    #[must_use]
    pub fn between(a: &Place, b: &Place) -> Self {
        let same_node = a.node.is_some() && a.node == b.node;
        match (&a.pci, &b.pci) {
            (Some(one), Some(other)) if one.host == other.host => below_one_host(one, other),
            (None, None) if same_node => Self::Same,
            (None, Some(_)) | (Some(_), None) if same_node => Self::HostBridge,
            (Some(_), Some(_)) if same_node => Self::Node,
            _ => Self::System,
        }
    }
}

/// Between two functions of one host bridge.
fn below_one_host(a: &PciPath, b: &PciPath) -> Distance {
    if a.hops == b.hops {
        return Distance::Same;
    }
    let shared = a.hops.iter().zip(&b.hops).take_while(|(x, y)| x == y).count();
    if shared == 0 {
        return Distance::HostBridge;
    }
    // Bridges below the last one that both ways have, not counting the functions themselves: a
    // switch has one for each of its ports.
    let below = |path: &PciPath| path.hops.len().saturating_sub(shared + 1);
    if below(a) <= 1 && below(b) <= 1 { Distance::OneBridge } else { Distance::Bridges }
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn on(folder: &str, node: u32) -> Place {
        Place { pci: Some(PciPath::parse(folder).unwrap()), node: Some(node) }
    }

    /// A root port 3a:00.0, a switch below it (3b:00.0) with ports 3c:00.0 and 3c:01.0.
    const SWITCH: &str = "pci0000:3a/0000:3a:00.0/0000:3b:00.0";

    #[test]
    fn each_distance_is_told_from_the_ways() {
        let gpu = on(&format!("{SWITCH}/0000:3c:00.0/0000:3d:00.0"), 0);
        let nic = on(&format!("{SWITCH}/0000:3c:01.0/0000:3e:00.0"), 0);
        let second_port = on(&format!("{SWITCH}/0000:3c:01.0/0000:3e:00.1"), 0);
        let second_switch = format!("{SWITCH}/0000:3c:02.0/0000:3f:00.0/0000:40:00.0");
        let behind_second = on(&format!("{second_switch}/0000:41:00.0"), 0);
        let other_port = on("pci0000:3a/0000:3a:02.0/0000:50:00.0", 0);
        let other_host = on("pci0000:80/0000:80:00.0/0000:81:00.0", 0);
        let other_node = on("pci0000:c0/0000:c0:00.0/0000:c1:00.0", 1);
        for (place, distance) in [
            (&gpu, Distance::Same),
            (&nic, Distance::OneBridge),
            (&behind_second, Distance::Bridges),
            (&other_port, Distance::HostBridge),
            (&other_host, Distance::Node),
            (&other_node, Distance::System),
        ] {
            assert_eq!(Distance::between(&gpu, place), distance);
        }
        assert_eq!(Distance::between(&nic, &second_port), Distance::OneBridge);
    }

    #[test]
    fn functions_of_a_virtual_machine_are_a_host_bridge_apart() {
        let (a, b) = (on("pci0000:00/0000:00:03.0", 0), on("pci0000:00/0000:00:04.0", 0));
        assert_eq!(Distance::between(&a, &b), Distance::HostBridge);
    }

    #[test]
    fn domains_with_the_same_numbers_are_different() {
        let (a, b) = (on("pci0000:00/0000:00:03.0", 0), on("pci0001:00/0001:00:03.0", 0));
        assert_eq!(Distance::between(&a, &b), Distance::Node);
    }

    #[test]
    fn nodes_are_a_host_bridge_from_their_devices() {
        let node = |node| Place { pci: None, node: Some(node) };
        let device = on("pci0000:00/0000:00:03.0", 1);
        assert_eq!(Distance::between(&node(1), &device), Distance::HostBridge);
        assert_eq!(Distance::between(&device, &node(0)), Distance::System);
        assert_eq!(Distance::between(&node(1), &node(1)), Distance::Same);
        assert_eq!(Distance::between(&node(1), &node(0)), Distance::System);
    }

    #[test]
    fn what_is_not_known_is_far() {
        let nowhere = Place::default();
        assert_eq!(Distance::between(&nowhere, &nowhere), Distance::System);
        let homeless = |folder| Place { pci: PciPath::parse(folder), node: None };
        let (a, b) = (homeless("pci0000:00/0000:00:03.0"), homeless("pci0000:80/0000:80:03.0"));
        assert_eq!(Distance::between(&a, &b), Distance::System);
        assert_eq!(Distance::between(&a, &a), Distance::Same);
    }

    fn place() -> impl Strategy<Value = Place> {
        let hop = (0_u8..3, 0_u8..2).prop_map(|(bus, device)| crate::Address {
            domain: 0,
            bus,
            device,
            function: 0,
        });
        let path = ((0_u8..2), proptest::collection::vec(hop, 1..5))
            .prop_map(|(bus, hops)| PciPath { host: (0, bus), hops });
        (proptest::option::of(path), proptest::option::of(0_u32..2))
            .prop_map(|(pci, node)| Place { pci, node })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn the_way_back_is_as_far(a in place(), b in place()) {
            prop_assert_eq!(Distance::between(&a, &b), Distance::between(&b, &a));
        }

        #[test]
        fn only_the_same_is_the_same(a in place(), b in place()) {
            if Distance::between(&a, &b) == Distance::Same {
                prop_assert_eq!(a.pci, b.pci);
            }
        }
    }
}
