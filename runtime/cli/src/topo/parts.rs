//! The rows of the matrix: nodes, then devices.

use stepccl_topology::{Cpus, Machine, Place};

/// A row and column of the matrix.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub label: String,
    pub place: Place,
    pub cpus: &'a Cpus,
}

pub(super) fn parts(machine: &Machine) -> Vec<Part<'_>> {
    let nodes = machine.nodes.iter().map(|node| Part {
        label: format!("node{}", node.number),
        place: node.place(),
        cpus: &node.cpus,
    });
    let devices = machine.devices.iter().map(|device| Part {
        label: device.label.clone(),
        place: device.place.clone(),
        cpus: &device.cpus,
    });
    nodes.chain(devices).collect()
}
