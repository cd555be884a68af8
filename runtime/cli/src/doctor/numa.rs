//! NUMA nodes, and whether the kernel moves memory between them behind our back.

use super::finding::Finding;
use super::scene::Scene;

pub(super) fn check(scene: &Scene) -> Finding {
    let machine = scene.machine();
    let distances = machine.nodes.first().map(|node| node.distances.clone()).unwrap_or_default();
    let balancing = scene.proc("sys/kernel/numa_balancing").is_some_and(|text| text != "0");
    judge(machine.nodes.len(), &distances, balancing)
}

fn judge(nodes: usize, distances: &[u32], balancing: bool) -> Finding {
    match nodes {
        0 => return Finding::not_here("no nodes are told"),
        1 => return Finding::ok("one node: all memory is equally near"),
        _ => {}
    }
    let distances: Vec<_> = distances.iter().map(u32::to_string).collect();
    let fact = format!("{nodes} nodes, distances from the first {}", distances.join(" "));
    if balancing {
        return Finding::warn(
            format!("{fact}; the kernel moves pages between them while ranks copy"),
            "sudo sysctl kernel.numa_balancing=0",
        );
    }
    Finding::ok(fact)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn balancing_matters_only_between_nodes() {
        assert_eq!(judge(0, &[], false).verdict, Verdict::NotHere);
        assert_eq!(judge(1, &[10], true).verdict, Verdict::Ok);
        assert_eq!(judge(2, &[10, 21], true).verdict, Verdict::Warn);
        assert!(judge(2, &[10, 21], false).fact.ends_with("10 21"));
    }
}
