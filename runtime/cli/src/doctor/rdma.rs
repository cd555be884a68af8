//! RDMA links, as `ibstat` shows them.

use super::finding::Finding;
use super::scene::Scene;

/// Most ports that are told.
const MOST: usize = 32;

/// A port of an RDMA device.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Port {
    name: String,
    /// As `4: ACTIVE`.
    state: String,
    rate: String,
    layer: String,
    /// Network interface of its device.
    interface: Option<String>,
}

pub(super) fn check(scene: &Scene) -> Finding {
    let ports = ports(scene);
    let verbs = scene.dev.join("infiniband").is_dir();
    judge(&ports, verbs)
}

fn ports(scene: &Scene) -> Vec<Port> {
    let mut found = Vec::new();
    for device in scene.sys_names("class/infiniband") {
        let folder = format!("class/infiniband/{device}");
        let interface = scene.sys_names(&format!("{folder}/device/net")).into_iter().next();
        for port in scene.sys_names(&format!("{folder}/ports")) {
            let text = |file: &str| {
                let text = scene.sys(&format!("{folder}/ports/{port}/{file}"));
                let text = text.and_then(|text| text.lines().next().map(str::to_owned));
                text.filter(|text| text.len() < 64).unwrap_or_else(|| "unknown".to_owned())
            };
            found.push(Port {
                name: format!("{device}/{port}"),
                state: text("state"),
                rate: text("rate"),
                layer: text("link_layer"),
                interface: interface.clone(),
            });
        }
    }
    found
}

fn judge(ports: &[Port], verbs: bool) -> Finding {
    if ports.is_empty() {
        return Finding::not_here("no RDMA adapter; other nodes are reached over TCP");
    }
    let shown: Vec<_> = ports
        .iter()
        .take(MOST)
        .map(|p| format!("{} {} {} {}", p.name, word(&p.state), p.rate, p.layer))
        .collect();
    let more = if ports.len() > MOST {
        format!(" and {} more", ports.len() - MOST)
    } else {
        String::new()
    };
    let fact = format!("{}{more}", shown.join("; "));
    if !verbs {
        let fact = format!("{fact}; programs cannot reach them: no /dev/infiniband");
        return Finding::fail(fact, "sudo modprobe ib_uverbs  # docker: --device /dev/infiniband");
    }
    match ports.iter().find(|port| word(&port.state) != "ACTIVE") {
        None => Finding::ok(fact),
        Some(port) => Finding::warn(fact, bring_up(port)),
    }
}

fn bring_up(port: &Port) -> String {
    match (&port.interface, port.layer.as_str(), word(&port.state)) {
        (Some(interface), "Ethernet", _) => {
            format!("sudo ip link set dev {interface} up  # or look at the cable")
        }
        (_, _, "INIT") => "sudo systemctl start opensm  # no subnet manager answers".to_owned(),
        _ => format!(
            "ibstat {}  # no link: look at the cable",
            port.name.split('/').next().unwrap_or("")
        ),
    }
}

/// The word of `4: ACTIVE`.
fn word(state: &str) -> &str {
    state.rsplit(": ").next().unwrap_or(state)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    fn port(scene: &Scene, device: &str, state: &str, layer: &str) {
        let folder = format!("sys/class/infiniband/{device}/ports/1");
        scene.write(&format!("{folder}/state"), state);
        scene.write(&format!("{folder}/rate"), "400 Gb/sec (4X NDR)\n");
        scene.write(&format!("{folder}/link_layer"), layer);
    }

    #[test]
    fn links_that_are_down_have_the_fix_that_fits() {
        let (scene, _folder) = Scene::made_up();
        assert_eq!(check(&scene).verdict, Verdict::NotHere);
        port(&scene, "mlx5_0", "4: ACTIVE\n", "InfiniBand");
        let found = check(&scene);
        assert_eq!(found.verdict, Verdict::Fail);
        assert!(found.fix.unwrap().contains("ib_uverbs"));
        scene.write("dev/infiniband/uverbs0", "");
        let found = check(&scene);
        assert_eq!(
            (found.verdict, found.fact.as_str()),
            (Verdict::Ok, "mlx5_0/1 ACTIVE 400 Gb/sec (4X NDR) InfiniBand")
        );
        port(&scene, "mlx5_1", "2: INIT", "InfiniBand");
        assert!(check(&scene).fix.unwrap().contains("opensm"));
        port(&scene, "mlx5_1", "1: DOWN", "Ethernet");
        scene.write("sys/class/infiniband/mlx5_1/device/net/ens1/mtu", "1500");
        assert!(check(&scene).fix.unwrap().contains("ip link set dev ens1 up"));
        port(&scene, "mlx5_1", "1: DOWN", "InfiniBand");
        assert!(check(&scene).fix.unwrap().contains("ibstat mlx5_1"));
        port(&scene, "mlx5_1", &"\u{1b}x".repeat(1000), "InfiniBand");
        let found = check(&scene);
        assert!(found.fact.len() < 200 && !found.fact.contains('\u{1b}'), "{found:?}");
    }
}
