//! Which algorithm, page and depth to take.

use std::borrow::Cow;
use std::time::Duration;

use super::bound::{lower_bound, nanoseconds};
use super::figures::Figures;
use super::lanes::LANES;
use super::timing;
use crate::{Algorithm, Collective, DType, GRAIN_BYTES, Plan, PlanError, Topology};

/// Within what a plan must stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Staging of a rank in bytes.
    pub staging_bytes: u64,
    /// Most rounds in flight; 0 counts as 1.
    pub max_depth: u32,
    /// The only algorithm to consider.
    pub algorithm: Option<Algorithm>,
    /// Flags a rank has.
    pub flags: u32,
    /// Most sources of one reduce.
    pub reduce_sources: u32,
}

impl Default for Limits {
    /// 8 MiB of staging, 4 rounds in flight, any algorithm, and no other bound.
    fn default() -> Self {
        Self {
            staging_bytes: 8 << 20,
            max_depth: 4,
            algorithm: None,
            flags: u32::MAX,
            reduce_sources: u32::MAX,
        }
    }
}

/// What became of an algorithm that was considered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It could run; these are its best page and depth.
    Possible {
        /// Elements of a page.
        page_elements: usize,
        /// Rounds in flight.
        depth: u32,
        /// Time it should take.
        predicted: Duration,
    },
    /// It could not.
    Impossible(Cow<'static, str>),
}

/// One line of the table of what was considered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// What became of it.
    pub verdict: Verdict,
}

/// How a collective of a certain size is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Type of the elements.
    pub dtype: DType,
    /// Elements of a block.
    pub count: usize,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Elements of a page, at least 1.
    pub page_elements: usize,
    /// Rounds in flight, at least 1.
    pub depth: u32,
    /// Rounds in all: 0 where there is nothing to do, 1 for a barrier.
    pub rounds: u64,
    /// Staging of a rank that is used, in bytes.
    pub staging_bytes: u64,
    /// Time it should take.
    pub predicted: Duration,
    /// Time below which no plan can be.
    pub lower_bound: Duration,
    /// All that was considered, in the order of [`Algorithm::ALL`].
    pub considered: Vec<Candidate>,
}

/// Plans this much slower than the fastest are as good, so that the one that needs least staging
/// is taken: small pages stay in the cache, and predictions are no better than this.
const AS_GOOD: f64 = 1.02;

impl Choice {
    /// Bytes of a block.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        (self.count as u64).saturating_mul(self.dtype.size() as u64)
    }

    /// Bytes of a page.
    #[must_use]
    pub fn page_bytes(&self) -> u64 {
        (self.page_elements as u64).saturating_mul(self.dtype.size() as u64)
    }
}

/// A way to run.
#[derive(Clone, Copy)]
struct Way {
    algorithm: Algorithm,
    page_bytes: u64,
    depth: u32,
    staging_bytes: u64,
    ns: f64,
}

/// Choose how to run `collective` on `count` elements a block. The same arguments always give the
/// same choice, so ranks need not agree on it.
///
/// # Errors
///
/// [`PlanError::RootOutOfRange`]; [`PlanError::Unsupported`] for a forced algorithm that has no
/// plan; [`PlanError::NothingFits`] with the reason of each algorithm.
pub fn choose(
    collective: Collective,
    topology: &Topology,
    count: usize,
    dtype: DType,
    figures: &Figures,
    limits: &Limits,
) -> Result<Choice, PlanError> {
    if let Some(algorithm) = limits.algorithm {
        Plan::new(collective, topology, algorithm)?;
    }
    Plan::new(collective, topology, Algorithm::Direct)?;
    let size = dtype.size() as u64;
    let count = if collective == Collective::Barrier { 0 } else { count as u64 };
    let block = count.saturating_mul(size);
    let wanted = |algorithm: &Algorithm| limits.algorithm.is_none_or(|only| only == *algorithm);
    let mut ways = Vec::new();
    let mut considered = Vec::new();
    for algorithm in Algorithm::ALL.into_iter().filter(wanted) {
        let first = ways.len();
        let verdict =
            match consider(collective, topology, block, algorithm, figures, limits, &mut ways) {
                Err(reason) => Verdict::Impossible(reason),
                Ok(()) => best(&ways[first..]).map_or_else(
                    || Verdict::Impossible("no page fits".into()),
                    |way| Verdict::Possible {
                        page_elements: page_elements(way.page_bytes, size),
                        depth: way.depth,
                        predicted: nanoseconds(way.ns),
                    },
                ),
            };
        considered.push(Candidate { algorithm, verdict });
    }
    let Some(way) = best(&ways) else {
        return Err(PlanError::NothingFits { collective, reason: reasons(&considered) });
    };
    let page_elements = page_elements(way.page_bytes, size);
    let rounds = match collective {
        Collective::Barrier => 1,
        _ => count.div_ceil(page_elements as u64),
    };
    let lower_bound = lower_bound(collective, topology, block, figures);
    Ok(Choice {
        dtype,
        count: usize::try_from(count).unwrap_or(usize::MAX),
        algorithm: way.algorithm,
        page_elements,
        depth: way.depth,
        rounds,
        staging_bytes: way.staging_bytes,
        predicted: nanoseconds(way.ns).max(lower_bound),
        lower_bound,
        considered,
    })
}

fn page_elements(page_bytes: u64, size: u64) -> usize {
    usize::try_from((page_bytes / size).max(1)).unwrap_or(usize::MAX)
}

/// The way with the least staging among those that are as good as the fastest.
fn best(ways: &[Way]) -> Option<Way> {
    let fastest = ways.iter().map(|way| way.ns).fold(f64::INFINITY, f64::min);
    ways.iter()
        .filter(|way| way.ns <= fastest * AS_GOOD)
        .min_by(|a, b| a.staging_bytes.cmp(&b.staging_bytes).then(a.ns.total_cmp(&b.ns)))
        .copied()
}

fn reasons(considered: &[Candidate]) -> String {
    let reason = |row: &Candidate| match &row.verdict {
        Verdict::Impossible(reason) => Some(format!("{}: {reason}", row.algorithm)),
        Verdict::Possible { .. } => None,
    };
    considered.iter().filter_map(reason).collect::<Vec<_>>().join("; ")
}

/// Append the ways in which `algorithm` can run.
fn consider(
    collective: Collective,
    topology: &Topology,
    block: u64,
    algorithm: Algorithm,
    figures: &Figures,
    limits: &Limits,
    ways: &mut Vec<Way>,
) -> Result<(), Cow<'static, str>> {
    const GRAIN: u64 = GRAIN_BYTES as u64;
    if let Some(reason) = algorithm.missing(collective, topology) {
        return Err(reason.into());
    }
    let sources = algorithm.reduce_sources(collective, topology);
    if sources > limits.reduce_sources {
        let most = limits.reduce_sources;
        return Err(format!("reduces {sources} sources; the engine takes {most}").into());
    }
    let plan = Plan::new(collective, topology, algorithm).map_err(|e| e.to_string())?;
    let shape = plan.program(collective.root().unwrap_or(0));
    if shape.flags > limits.flags {
        return Err(format!("needs {} flags; a rank has {}", shape.flags, limits.flags).into());
    }
    // A page in staging is a multiple of the grain, the block's own page may be shorter.
    let areas = u64::from(shape.areas);
    let room = limits.staging_bytes.checked_div(areas).unwrap_or(u64::MAX) / GRAIN * GRAIN;
    let fits = |depth: u32| room / u64::from(depth) / GRAIN * GRAIN;
    if areas > 0 && block > 0 && room == 0 {
        let (least, have) = (areas * GRAIN, limits.staging_bytes);
        return Err(format!("needs at least {least} bytes of staging; there are {have}").into());
    }
    let top = block.min(room);
    let mut pages = [top; LANES];
    for lane in 1..LANES {
        // Half of a byte is a page too.
        let half = (pages[lane - 1] / 2).max(1);
        pages[lane] = half.next_multiple_of(GRAIN).min(pages[lane - 1]);
    }
    let round = timing::time(&plan, &shape, figures, &pages);
    let hop = if topology.nodes() == 1 { figures.local } else { figures.network }.latency_ns;
    for lane in 0..LANES {
        if lane > 0 && pages[lane] == pages[lane - 1] {
            break;
        }
        let rounds = block.checked_div(pages[lane]).map_or(1, |_| block.div_ceil(pages[lane]));
        for depth in depths(limits.max_depth, rounds) {
            if pages[lane] > fits(depth) && areas > 0 {
                break;
            }
            // A slot is used again when all have finished its round and say so.
            let turn = (round.span[lane] + hop) / f64::from(depth);
            let more = rounds.saturating_sub(1) as f64 * round.busy[lane].max(turn);
            let used = areas * pages[lane].next_multiple_of(GRAIN) * u64::from(depth);
            ways.push(Way {
                algorithm,
                page_bytes: pages[lane],
                depth,
                staging_bytes: used,
                ns: round.span[lane] + more,
            });
        }
    }
    Ok(())
}

/// Depths worth a look: doubling up to the most, and not more than there are rounds.
fn depths(most: u32, rounds: u64) -> impl Iterator<Item = u32> {
    let most = u64::from(most.max(1)).min(rounds.max(1)) as u32;
    let doubling = (0..32).map(|shift| 1_u32 << shift).take_while(move |depth| *depth < most);
    doubling.chain(std::iter::once(most))
}
