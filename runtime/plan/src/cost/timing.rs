//! One round's time, from the programs themselves.

use super::figures::{Figures, Rates};
use super::lanes::{LANES, Pages, Times};
use super::path;
use crate::{Plan, Program, Step, Topology};

/// Up to so many ranks a round is run; beyond, its critical path is put together from the
/// programs of a few ranks.
pub(super) const RUN_RANKS: u32 = 16;

/// One round, in nanoseconds, for each page size.
pub(super) struct Round {
    /// From the start to the end of the last rank.
    pub span: Times,
    /// Work of the busiest rank.
    pub busy: Times,
}

/// Time a round of `plan` for pages of so many bytes.
pub(super) fn time(plan: &Plan, shape: &Program, figures: &Figures, pages: &[u64; LANES]) -> Round {
    let pages = Pages::new(pages, shape.parts);
    if plan.topology().ranks() <= RUN_RANKS {
        run(plan, shape, figures, &pages)
    } else {
        estimate(plan, figures, &pages)
    }
}

/// What steps cost.
struct Costs<'a> {
    topology: &'a Topology,
    rates: Rates,
    overhead: f64,
    pages: &'a Pages,
}

impl<'a> Costs<'a> {
    fn new(plan: &'a Plan, figures: &Figures, pages: &'a Pages) -> Self {
        let (rates, overhead) = (figures.rates(), figures.step_overhead_ns);
        Self { topology: plan.topology(), rates, overhead, pages }
    }

    fn of(&self, rank: u32, step: &Step) -> Times {
        let rate = self.rates.step_ns_per_byte(self.topology, rank, step);
        if rate == 0.0 {
            return [self.overhead; LANES];
        }
        let cost = |bytes| if bytes > 0.0 { self.overhead + bytes * rate } else { 0.0 };
        self.pages.bytes_of(step).map(cost)
    }
}

fn run(plan: &Plan, shape: &Program, figures: &Figures, pages: &Pages) -> Round {
    let costs = Costs::new(plan, figures, pages);
    let topology = plan.topology();
    let ranks = topology.ranks();
    let programs: Vec<Program> = (0..ranks).map(|rank| plan.program(rank)).collect();
    let flags = shape.flags as usize;
    let slot = |rank: u32, flag: u32| rank as usize * flags + flag as usize;
    let mut raised: Vec<Option<Times>> = vec![None; ranks as usize * flags];
    let mut now: Vec<Times> = vec![[0.0; LANES]; ranks as usize];
    let mut busy: Vec<Times> = vec![[0.0; LANES]; ranks as usize];
    let mut next = vec![0; ranks as usize];
    // Waits depend on signals alone, so any order of ranks gives the same times.
    let mut moved = true;
    while moved {
        moved = false;
        for program in &programs {
            let rank = program.rank as usize;
            while let Some(step) = program.steps.get(next[rank]) {
                if let Step::Wait { from, flag } = *step {
                    let Some(times) = raised[slot(from, flag)] else { break };
                    let latency = figures.latency_ns(topology, from, program.rank);
                    for (now, raised) in now[rank].iter_mut().zip(times) {
                        *now = now.max(raised + latency);
                    }
                }
                let cost = costs.of(program.rank, step);
                add(&mut now[rank], &cost);
                add(&mut busy[rank], &cost);
                if let Step::Signal { flag, .. } = *step {
                    raised[slot(program.rank, flag)] = Some(now[rank]);
                }
                next[rank] += 1;
                moved = true;
            }
        }
    }
    Round { span: largest(&now), busy: largest(&busy) }
}

/// Work along the critical path of ranks, and the latencies on it.
fn estimate(plan: &Plan, figures: &Figures, pages: &Pages) -> Round {
    let costs = Costs::new(plan, figures, pages);
    let path = path::of(plan);
    let latency = f64::from(path.local_hops) * figures.local.latency_ns
        + f64::from(path.network_hops) * figures.network.latency_ns;
    let mut span = [latency; LANES];
    let mut busiest = [0.0; LANES];
    for (rank, times) in path.ranks {
        let mut busy = [0.0; LANES];
        for step in &plan.program(rank).steps {
            add(&mut busy, &costs.of(rank, step));
        }
        add(&mut span, &busy.map(|b| b * f64::from(times)));
        busiest = largest(&[busiest, busy]);
    }
    Round { span, busy: busiest }
}

fn add(sum: &mut Times, more: &Times) {
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum += more;
    }
}

fn largest(all: &[Times]) -> Times {
    all.iter().fold([0.0; LANES], |mut most, times| {
        for (most, time) in most.iter_mut().zip(times) {
            *most = most.max(*time);
        }
        most
    })
}
