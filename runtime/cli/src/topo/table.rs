//! The matrix as text.

use stepccl_plan::format_bytes;
use stepccl_topology::{Device, Distance, Kind, Machine, Node};

use super::parts::{Part, parts};

/// Shown where something is not known.
const UNKNOWN: &str = "-";

pub(super) fn text(machine: &Machine) -> String {
    let parts = parts(machine);
    let mut text = String::new();
    if parts.is_empty() {
        text += "Nothing was found: no NUMA nodes, processors or devices.\n";
    } else {
        text += &matrix(&parts);
        text += "\n";
        text += &list(machine);
    }
    text += &totals(machine);
    if !parts.is_empty() {
        text += "\nBetween two parts lies:\n";
        for distance in Distance::ALL {
            text += &format!("  {:4}  {}\n", distance.name(), distance.meaning());
        }
    }
    text
}

fn matrix(parts: &[Part<'_>]) -> String {
    let labels = parts.iter().map(|part| part.label.len()).max().unwrap_or(0);
    let cell = labels.max(4);
    let affinity = "CPU affinity";
    let cpus: Vec<String> = parts.iter().map(|part| shown(&part.cpus.to_string())).collect();
    let wide = cpus.iter().map(String::len).max().unwrap_or(0).max(affinity.len());
    let heads: String = parts.iter().map(|part| format!("  {:cell$}", part.label)).collect();
    let mut text = format!("{:labels$}{heads}  {affinity:wide$}  NUMA node\n", "");
    for (row, cpus) in parts.iter().zip(&cpus) {
        let cells: String = parts
            .iter()
            .map(|column| format!("  {:cell$}", Distance::between(&row.place, &column.place)))
            .collect();
        let node = row.place.node.map_or(UNKNOWN.to_owned(), |node| node.to_string());
        text += &format!("{:labels$}{cells}  {cpus:wide$}  {node}\n", row.label);
    }
    text
}

/// A line for each part: which one it is.
fn list(machine: &Machine) -> String {
    let rows: Vec<[String; 4]> =
        machine.nodes.iter().map(node).chain(machine.devices.iter().map(device)).collect();
    let wide = |i: usize| rows.iter().map(|row| row[i].len()).max().unwrap_or(0);
    let (label, address, what) = (wide(0), wide(1), wide(2));
    rows.iter()
        .map(|[a, b, c, d]| {
            format!("{a:label$}  {b:address$}  {c:what$}  {d}").trim_end().to_owned() + "\n"
        })
        .collect()
}

fn node(node: &Node) -> [String; 4] {
    let memory = node.memory_bytes.map_or("memory unknown".to_owned(), format_bytes);
    let distances: Vec<_> = node.distances.iter().map(u32::to_string).collect();
    let distances = match &distances[..] {
        [] | [_] => String::new(),
        several => format!("memory distances {}", several.join(" ")),
    };
    let cpus = node.cpus.count();
    [format!("node{}", node.number), String::new(), format!("{cpus} CPUs, {memory}"), distances]
}

fn device(device: &Device) -> [String; 4] {
    let address = device.address().map_or(UNKNOWN.to_owned(), |address| address.to_string());
    let driver = device.driver.as_ref().map(|driver| format!("driver {driver}"));
    let detail: Vec<_> = driver.into_iter().chain(device.link.clone()).collect();
    [device.label.clone(), address, what(&device.kind), detail.join(", ")]
}

/// Names by which people know a device.
pub(super) fn what(kind: &Kind) -> String {
    match kind {
        Kind::Gpu { maker, numbers: (vendor, model) } => {
            format!("{} {vendor:04x}:{model:04x}", maker.unwrap_or("accelerator"))
        }
        Kind::Nic { rdma, interfaces } => {
            let names: Vec<_> = rdma.iter().chain(interfaces).map(String::as_str).collect();
            names.join(" ")
        }
        Kind::Dma { channels, in_use } => format!("{channels} channels, {in_use} in use"),
    }
}

fn totals(machine: &Machine) -> String {
    let count = |name| machine.devices.iter().filter(|d| d.kind.name() == name).count();
    let rdma =
        |device: &&Device| matches!(&device.kind, Kind::Nic { rdma, .. } if !rdma.is_empty());
    format!(
        "NUMA nodes {}, sockets {}, CPUs {} ({}), GPUs {}, network adapters {} (with RDMA {}), DMA engines {}; /dev/dma_device {}\n",
        machine.nodes.len(),
        machine.packages,
        machine.cpus.count(),
        shown(&machine.cpus.to_string()),
        count("gpu"),
        count("nic"),
        machine.devices.iter().filter(rdma).count(),
        count("dma"),
        if machine.dma_device { "is there" } else { "is not there" },
    )
}

fn shown(text: &str) -> String {
    if text.is_empty() { UNKNOWN.to_owned() } else { text.to_owned() }
}
