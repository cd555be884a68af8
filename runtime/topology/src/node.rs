//! NUMA nodes.

use crate::sysfs::Sysfs;
use crate::{Cpus, Place};

const FOLDER: &str = "devices/system/node";

/// A NUMA node: memory, and the processors next to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number.
    pub number: u32,
    /// Its processors; a node of memory alone has none.
    pub cpus: Cpus,
    /// Its memory in bytes, where that is known.
    pub memory_bytes: Option<u64>,
    /// How far its memory is from the processors of each node, in the order of their numbers; 10
    /// is the least. Empty where that is not known.
    pub distances: Vec<u32>,
}

impl Node {
    /// Where it is.
    #[must_use]
    pub const fn place(&self) -> Place {
        Place { pci: None, node: Some(self.number) }
    }
}

/// Every node, by number; one with all processors where the kernel knows of no nodes.
pub(crate) fn nodes(sysfs: &Sysfs) -> Vec<Node> {
    let mut nodes: Vec<Node> = sysfs
        .names(FOLDER)
        .iter()
        .filter_map(|name| name.strip_prefix("node")?.parse().ok())
        .map(|number| node(sysfs, number))
        .collect();
    nodes.sort_by_key(|node| node.number);
    nodes.dedup_by_key(|node| node.number);
    if nodes.is_empty()
        && let Some(cpus) = list(sysfs, "devices/system/cpu/online").filter(|cpus| !cpus.is_empty())
    {
        nodes.push(Node { number: 0, cpus, memory_bytes: None, distances: Vec::new() });
    }
    nodes
}

fn node(sysfs: &Sysfs, number: u32) -> Node {
    let file = |name: &str| format!("{FOLDER}/node{number}/{name}");
    let distances = sysfs.text(&file("distance")).and_then(|text| {
        text.split_whitespace().map(|word| word.parse().ok()).collect::<Option<Vec<u32>>>()
    });
    Node {
        number,
        cpus: list(sysfs, &file("cpulist")).unwrap_or_default(),
        memory_bytes: sysfs.text(&file("meminfo")).and_then(|text| memory(&text)),
        distances: distances.unwrap_or_default(),
    }
}

pub(crate) fn list(sysfs: &Sysfs, path: &str) -> Option<Cpus> {
    Cpus::parse(&sysfs.text(path)?)
}

/// Bytes of the line `Node 0 MemTotal: 65536 kB`.
fn memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.contains(" MemTotal:"))?;
    let kib = line.split_once(':')?.1.trim().strip_suffix("kB")?.trim();
    kib.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_in_kib() {
        assert_eq!(memory("Node 0 MemTotal:       64 kB\nNode 0 MemFree: 1 kB"), Some(65536));
        assert_eq!(memory("Node 0 MemTotal: much"), None);
        assert_eq!(memory("Node 0 MemTotal: 99999999999999999999 kB"), None);
        assert_eq!(memory(&format!("Node 0 MemTotal: {} kB", u64::MAX)), None);
    }
}
