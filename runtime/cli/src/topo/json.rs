//! The matrix as JSON.

use serde_json::{Map, Value, json};
use stepccl_topology::{Device, Distance, Kind, Machine};

use super::parts::parts;

pub(super) fn object(machine: &Machine) -> Value {
    let parts = parts(machine);
    let row = |from: &stepccl_topology::Place| -> Map<String, Value> {
        let cell = |to| Distance::between(from, to).name().into();
        parts.iter().map(|to| (to.label.clone(), cell(&to.place))).collect()
    };
    let matrix: Map<String, Value> =
        parts.iter().map(|from| (from.label.clone(), Value::Object(row(&from.place)))).collect();
    let nodes = machine.nodes.iter().map(|node| {
        json!({
            "label": format!("node{}", node.number),
            "number": node.number,
            "cpus": node.cpus.to_string(),
            "memory_bytes": node.memory_bytes,
            "distances": node.distances,
        })
    });
    let legend: Map<String, Value> =
        Distance::ALL.iter().map(|d| (d.name().to_owned(), d.meaning().into())).collect();
    json!({
        "sockets": machine.packages,
        "cpus": machine.cpus.to_string(),
        "dma_device": machine.dma_device,
        "nodes": nodes.collect::<Vec<_>>(),
        "devices": machine.devices.iter().map(device).collect::<Vec<_>>(),
        "matrix": matrix,
        "legend": legend,
    })
}

fn device(device: &Device) -> Value {
    let mut object = json!({
        "label": device.label,
        "kind": device.kind.name(),
        "address": device.address().map(|address| address.to_string()),
        "numa_node": device.place.node,
        "cpus": device.cpus.to_string(),
        "driver": device.driver,
        "link": device.link,
    });
    match &device.kind {
        Kind::Gpu { maker, numbers: (vendor, model) } => {
            object["maker"] = json!(maker);
            object["pci_ids"] = json!(format!("{vendor:04x}:{model:04x}"));
        }
        Kind::Nic { rdma, interfaces } => {
            object["rdma"] = json!(rdma);
            object["interfaces"] = json!(interfaces);
        }
        Kind::Dma { channels, in_use } => {
            object["channels"] = json!(channels);
            object["channels_in_use"] = json!(in_use);
        }
    }
    object
}
