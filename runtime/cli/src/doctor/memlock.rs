//! How much memory may be pinned.

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use super::finding::Finding;
use super::scene::Scene;

/// Adapters pin whole buffers: below this, large ones are refused.
const ENOUGH: u64 = 1 << 30;
/// Bit of `CAP_IPC_LOCK`, whose holder has no limit.
const IPC_LOCK: u32 = 14;

pub(super) fn check(scene: &Scene) -> Finding {
    let limit = match getrlimit(Resource::RLIMIT_MEMLOCK) {
        Ok((soft, _)) => (soft != RLIM_INFINITY).then_some(soft),
        Err(error) => return Finding::fail(format!("the limit is not told: {error}"), "ulimit -l"),
    };
    let machine = scene.machine();
    let pins = machine.dma_device
        || machine.devices.iter().any(|device| match &device.kind {
            stepccl_topology::Kind::Nic { rdma, .. } => !rdma.is_empty(),
            stepccl_topology::Kind::Gpu { .. } => true,
            stepccl_topology::Kind::Dma { .. } => false,
        });
    let status = scene.proc("self/status").unwrap_or_default();
    judge(limit, pins, capable(&status))
}

/// Whether the process of this `status` may pin without limit.
fn capable(status: &str) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits & (1 << IPC_LOCK) != 0)
}

fn judge(limit: Option<u64>, pins: bool, capable: bool) -> Finding {
    let Some(limit) = limit else { return Finding::ok("unlimited") };
    let shown = stepccl_plan::format_bytes(limit);
    if capable {
        return Finding::ok(format!("{shown}, and this process may pin more (CAP_IPC_LOCK)"));
    }
    if !pins {
        return Finding::ok(format!("{shown}; nothing here pins memory"));
    }
    if limit >= ENOUGH {
        return Finding::ok(shown);
    }
    Finding::warn(
        format!("{shown}: adapters and GPUs cannot pin large buffers"),
        "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/stepccl.conf  # then log in again; docker: --ulimit memlock=-1",
    )
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn a_small_limit_matters_only_where_memory_is_pinned() {
        let verdict = |limit, pins, capable| judge(limit, pins, capable).verdict;
        assert_eq!(verdict(Some(8 << 20), true, false), Verdict::Warn);
        assert_eq!(verdict(Some(8 << 20), false, false), Verdict::Ok);
        assert_eq!(verdict(Some(8 << 20), true, true), Verdict::Ok);
        assert_eq!(verdict(Some(1 << 40), true, false), Verdict::Ok);
        assert_eq!(verdict(None, true, false), Verdict::Ok);
    }

    #[test]
    fn the_capability_is_bit_14() {
        assert!(capable("Name: x\nCapEff:\t0000000000004000\n"));
        assert!(!capable("CapEff:\t0000000000002000\n") && !capable("CapEff: x") && !capable(""));
    }
}
