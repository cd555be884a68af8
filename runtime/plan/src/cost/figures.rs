//! The speeds of which costs are made.

use crate::{Span, Step, Topology};

/// One way between two ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// From the raise of a flag to its being seen, in nanoseconds.
    pub latency_ns: f64,
    /// Bytes a second of one rank.
    pub bytes_per_second: f64,
}

/// Speeds of a communicator. All are of one rank while all ranks are at work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Between ranks of one node.
    pub local: Link,
    /// Between nodes.
    pub network: Link,
    /// Bytes a second that a copy writes.
    pub copy_bytes_per_second: f64,
    /// Bytes a second that a reduce reads, all sources together.
    pub reduce_bytes_per_second: f64,
    /// What a step costs beside its bytes, in nanoseconds.
    pub step_overhead_ns: f64,
}

impl Default for Figures {
    /// The embedded host engine on a common server, and a 200 Gbit/s network: 150 ns and 10 GB/s
    /// within a node, 5 us and 25 GB/s between nodes, copies of 10 GB/s, reductions that read
    /// 16 GB/s, 25 ns a step. Only for the first choice; measured figures are better.
    fn default() -> Self {
        Self {
            local: Link { latency_ns: 150.0, bytes_per_second: 10e9 },
            network: Link { latency_ns: 5_000.0, bytes_per_second: 25e9 },
            copy_bytes_per_second: 10e9,
            reduce_bytes_per_second: 16e9,
            step_overhead_ns: 25.0,
        }
    }
}

const NS: f64 = 1e9;

impl Figures {
    /// Nanoseconds from a signal of `from` to a wait of `to`.
    #[must_use]
    pub fn latency_ns(&self, topology: &Topology, from: u32, to: u32) -> f64 {
        let link = if topology.same_node(from, to) { self.local } else { self.network };
        link.latency_ns
    }

    /// Nanoseconds that `step` keeps `rank` busy, where a span of it has `bytes` bytes. Waiting is
    /// not counted; steps without bytes to move are skipped.
    #[must_use]
    pub fn step_ns(&self, topology: &Topology, rank: u32, step: &Step, bytes: f64) -> f64 {
        let rate = self.rates().step_ns_per_byte(topology, rank, step);
        if rate > 0.0 && bytes == 0.0 { 0.0 } else { self.step_overhead_ns + bytes * rate }
    }

    pub(crate) fn rates(&self) -> Rates {
        let copy = NS / self.copy_bytes_per_second;
        Rates {
            copy,
            pull: copy.max(NS / self.local.bytes_per_second),
            network: NS / self.network.bytes_per_second,
            reduce: NS / self.reduce_bytes_per_second,
        }
    }

    /// Whether every figure is a number above zero, latencies and overhead at least zero.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let rates = [
            self.local.bytes_per_second,
            self.network.bytes_per_second,
            self.copy_bytes_per_second,
            self.reduce_bytes_per_second,
        ];
        let times = [self.local.latency_ns, self.network.latency_ns, self.step_overhead_ns];
        rates.iter().all(|rate| rate.is_finite() && *rate > 0.0)
            && times.iter().all(|time| time.is_finite() && *time >= 0.0)
    }
}

/// Nanoseconds a byte.
pub(crate) struct Rates {
    copy: f64,
    pull: f64,
    network: f64,
    reduce: f64,
}

impl Rates {
    /// Nanoseconds that each byte of a step's span costs; 0 for signals and waits. What is read of
    /// another node crosses the network first.
    pub fn step_ns_per_byte(&self, topology: &Topology, rank: u32, step: &Step) -> f64 {
        let is_far = |span: &Span| span.rank != rank && !topology.same_node(rank, span.rank);
        let (dst, own) = match step {
            Step::Copy { src, dst } if is_far(src) => (dst, self.pull.max(self.network)),
            Step::Copy { src, dst } => (dst, if src.rank == rank { self.copy } else { self.pull }),
            Step::Reduce { srcs, dst, .. } => {
                let far = srcs.iter().filter(|src| is_far(src)).count();
                (dst, self.reduce * srcs.len() as f64 + self.network * far as f64)
            }
            Step::Signal { .. } | Step::Wait { .. } => return 0.0,
        };
        if is_far(dst) { own.max(self.network) } else { own }
    }
}
