//! `stepccl topo` on made-up machines and on this one.

mod common;
#[path = "../../topology/tests/common/mod.rs"]
mod trees;

use common::{good, run};
use serde_json::Value;
use trees::Tree;

/// The words of the first line below the heads that begins with `label`.
fn row<'a>(text: &'a str, label: &str) -> Vec<&'a str> {
    let line = text.lines().skip(1).find(|line| line.split_whitespace().next() == Some(label));
    line.unwrap_or_else(|| panic!("no {label} in\n{text}")).split_whitespace().collect()
}

#[test]
fn a_server_is_a_square_of_distances() {
    let tree = Tree::server();
    let sysfs = tree.root().display();
    let text = good(&format!("topo --sysfs {sysfs}"));
    let heads: Vec<_> = text.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(heads[..4], ["node0", "node1", "GPU0", "GPU1"]);
    assert_eq!(heads[heads.len() - 4..], ["CPU", "affinity", "NUMA", "node"]);
    let parts = heads.len() - 4;
    assert_eq!(parts, 2 + 4 + 5 + 1);
    for (i, label) in heads.iter().take(parts).enumerate() {
        let cells = row(&text, label);
        assert_eq!(cells.len(), 1 + parts + 2, "{cells:?}");
        assert_eq!(cells[1 + i], "SELF");
    }
    assert_eq!(
        row(&text, "GPU0"),
        [
            "GPU0",
            "PHB",
            "SYS",
            "SELF",
            "PIX",
            "SYS",
            "SYS",
            "PIX",
            "PIX",
            "SYS",
            "SYS",
            "SYS",
            "SYS",
            "0-31,64-95",
            "0"
        ]
    );
    assert!(text.contains("mlx5_3 ens3np1") && text.contains("0000:13:00.0"), "{text}");
    assert!(text.contains("GPUs 4, network adapters 5 (with RDMA 4), DMA engines 1;"), "{text}");

    let json: Value = serde_json::from_str(&good(&format!("topo --json --sysfs {sysfs}"))).unwrap();
    assert_eq!(json["matrix"]["GPU3"]["NIC4"], "NODE");
    assert_eq!(json["devices"].as_array().unwrap().len(), 10);
    assert_eq!(json["nodes"][1]["cpus"], "32-63,96-127");
    assert_eq!(json["dma_device"], true);
}

#[test]
fn an_empty_tree_says_that_it_is_empty() {
    let tree = Tree::new();
    let text = good(&format!("topo --sysfs {}", tree.root().display()));
    assert!(text.starts_with("Nothing was found"), "{text}");
    let json = good(&format!("topo --json --sysfs {}", tree.root().display()));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["devices"], serde_json::json!([]));
}

#[test]
fn a_folder_that_is_none_is_a_bad_argument() {
    let run = run("topo --sysfs /nonexistent/tree");
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
    assert!(run.err.contains("/nonexistent/tree"), "{}", run.err);
}

#[test]
fn this_machine_is_shown() {
    let text = good("topo");
    assert!(text.contains("node0") && text.contains("SELF"), "{text}");
    let json: Value = serde_json::from_str(&good("topo --json")).unwrap();
    assert_eq!(json["matrix"]["node0"]["node0"], "SELF");
}
