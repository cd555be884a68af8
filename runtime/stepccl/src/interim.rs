use std::time::Duration;
use stepccl_plan::*;
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link { pub latency_ns: f64, pub bytes_per_second: f64 }
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures { pub local: Link, pub network: Link, pub copy_bytes_per_second: f64, pub reduce_bytes_per_second: f64, pub step_overhead_ns: f64 }
impl Default for Figures { fn default() -> Self { let l = Link{latency_ns:150.0,bytes_per_second:1e10}; Self{local:l,network:l,copy_bytes_per_second:1e10,reduce_bytes_per_second:1e10,step_overhead_ns:10.0} } }
pub struct Limits { pub staging_bytes: usize, pub max_depth: u32, pub algorithm: Option<Algorithm> }
#[derive(Debug)]
pub struct Choice { pub algorithm: Algorithm, pub page_elements: usize, pub depth: u32, pub predicted: Duration, pub lower_bound: Duration }
pub fn choose(c: Collective, t: &Topology, count: usize, d: DType, _f: &Figures, l: &Limits) -> Result<Choice, PlanError> {
    let bytes = count * d.size();
    let algorithm = l.algorithm.unwrap_or(if bytes >= 8192 && Algorithm::TwoShot.supports(c, t) { Algorithm::TwoShot } else { Algorithm::Direct });
    let p = Plan::new(c, t, algorithm)?.program(0);
    let depth = 4.min(l.max_depth);
    let page = (128<<10).min(l.staging_bytes / depth as usize / (p.areas.max(1) as usize) / 64 * 64) / d.size();
    Ok(Choice { algorithm, page_elements: page.max(1), depth, predicted: Duration::ZERO, lower_bound: Duration::ZERO })
}
