//! The run.

use std::time::Duration;

use stepccl_plan::{Program, ReduceOp, Span, Step};

use crate::memory::{Memory, Page};
use crate::{Blocked, Element, Order, Outcome, Reason, Scenario};

/// Run `scenario` on `inputs`, one for each rank: all its blocks one after the other.
///
/// # Panics
///
/// Where there is not one program and one input of the right length for each rank, where page or
/// depth is 0, or where a program names memory that does not exist; the verifier refuses such.
#[must_use]
pub fn run<T: Element>(scenario: &Scenario<'_>, inputs: &[Vec<T>]) -> Outcome<T> {
    let ranks = scenario.topology.ranks() as usize;
    assert_eq!((scenario.programs.len(), inputs.len()), (ranks, ranks), "one for each rank");
    assert!(scenario.page > 0 && scenario.depth > 0, "page and depth are at least 1");
    World::new(scenario, inputs).finish()
}

/// A round that a rank has begun and not finished.
struct Flight {
    round: u64,
    step: usize,
}

struct Rank {
    /// Virtual time in nanoseconds.
    now: f64,
    /// Oldest first.
    flights: Vec<Flight>,
    begun: u64,
    /// When each round was finished.
    finished: Vec<f64>,
    /// Steps until it is lost.
    left: u64,
    slowness: f64,
}

/// What a rank can do next.
enum Next {
    /// A step of the flight of that index, at that time.
    Step(usize, f64),
    /// Begin a round, at that time.
    Begin(f64),
    /// Nothing now.
    Stuck(Blocked),
    /// Nothing any more.
    Ended,
}

struct World<'a, T> {
    scenario: &'a Scenario<'a>,
    rounds: u64,
    memories: Vec<Memory<T>>,
    ranks: Vec<Rank>,
    /// By rank and flag: when it was raised in each round.
    raised: Vec<Vec<f64>>,
    random: u64,
}

impl<'a, T: Element> World<'a, T> {
    fn new(scenario: &'a Scenario<'a>, inputs: &[Vec<T>]) -> Self {
        let memories = scenario
            .programs
            .iter()
            .zip(inputs)
            .map(|(program, input)| Memory::new(scenario, program, input))
            .collect();
        let rank = |program: &Program| {
            let faults = &scenario.faults;
            let lost = faults.lost.iter().find(|lost| lost.rank == program.rank);
            let slow = faults.slow.iter().find(|slow| slow.0 == program.rank);
            Rank {
                now: 0.0,
                flights: Vec::new(),
                begun: 0,
                finished: Vec::new(),
                left: lost.map_or(u64::MAX, |lost| lost.after_steps),
                slowness: slow.map_or(1.0, |slow| slow.1),
            }
        };
        let flags = scenario.programs.first().map_or(0, |program| program.flags) as usize;
        Self {
            scenario,
            rounds: scenario.rounds(),
            memories,
            ranks: scenario.programs.iter().map(rank).collect(),
            raised: vec![Vec::new(); flags * scenario.programs.len()],
            random: match scenario.order {
                Order::Clock => 0,
                Order::Random(seed) => seed,
            },
        }
    }

    fn finish(mut self) -> Outcome<T> {
        let all = self.ranks.len() as u32;
        // Every pass moves a rank on by one step, so there are only so many.
        loop {
            let mut able: Vec<(u32, Next, f64)> = Vec::new();
            let mut blocked = Vec::new();
            for rank in 0..all {
                match self.next(rank) {
                    Next::Stuck(why) => blocked.push(why),
                    Next::Ended => {}
                    next @ (Next::Step(_, at) | Next::Begin(at)) => able.push((rank, next, at)),
                }
            }
            let chosen = match self.scenario.order {
                Order::Random(_) if !able.is_empty() => self.draw(able.len()),
                _ => {
                    let earliest = able.iter().enumerate().min_by(|a, b| a.1.2.total_cmp(&b.1.2));
                    match earliest {
                        Some((index, _)) => index,
                        None => return self.end(blocked),
                    }
                }
            };
            let (rank, next, at) = able.swap_remove(chosen);
            match next {
                Next::Step(flight, _) => self.step(rank, flight, at),
                _ => self.begin(rank, at),
            }
        }
    }

    fn end(self, blocked: Vec<Blocked>) -> Outcome<T> {
        let end = self.ranks.iter().map(|rank| rank.now).fold(0.0, f64::max);
        let outputs = self.memories.into_iter().map(|m| m.into_output(self.scenario)).collect();
        Outcome { outputs, elapsed: Duration::from_nanos(end as u64), blocked }
    }

    /// A number below `bound` (xorshift).
    fn draw(&mut self, bound: usize) -> usize {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.random;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ (x >> 31)) % bound as u64) as usize
    }

    fn next(&mut self, rank: u32) -> Next {
        let state = &self.ranks[rank as usize];
        let oldest = state.flights.first();
        let stuck = |reason| {
            let (round, step) = oldest.map_or((state.begun, 0), |f| (f.round, f.step));
            Next::Stuck(Blocked { rank, round, step, reason })
        };
        if oldest.is_none() && state.begun == self.rounds {
            return Next::Ended;
        }
        if state.left == 0 {
            return stuck(Reason::Lost);
        }
        let mut ready: Vec<Next> = Vec::new();
        let mut why = None;
        for (index, flight) in state.flights.iter().enumerate() {
            // Never a step before the same step of the round before.
            if index > 0 && state.flights[index - 1].step <= flight.step {
                continue;
            }
            match self.scenario.programs[rank as usize].steps[flight.step] {
                Step::Wait { from, flag } => match self.seen(rank, from, flag, flight.round) {
                    Some(at) => ready.push(Next::Step(index, at.max(state.now))),
                    None => why = why.or(Some(Reason::Flag { from, flag })),
                },
                _ => ready.push(Next::Step(index, state.now)),
            }
        }
        if state.begun < self.rounds && state.flights.len() < self.scenario.depth as usize {
            match self.slot_free(rank, state.begun) {
                Ok(at) => ready.push(Next::Begin(at.max(state.now))),
                Err(from) => why = why.or(Some(Reason::Slot { from })),
            }
        }
        if ready.is_empty() {
            return stuck(why.unwrap_or(Reason::Lost));
        }
        let chosen = match self.scenario.order {
            Order::Random(_) => self.draw(ready.len()),
            // The earliest, of several the oldest round.
            Order::Clock => {
                let at = |next: &Next| match next {
                    Next::Step(_, at) | Next::Begin(at) => *at,
                    _ => f64::INFINITY,
                };
                let pairs = ready.iter().enumerate();
                pairs.min_by(|a, b| at(a.1).total_cmp(&at(b.1))).map_or(0, |(index, _)| index)
            }
        };
        ready.swap_remove(chosen)
    }

    /// When `rank` sees the flag of `from` raised in `round`, if it was.
    fn seen(&self, rank: u32, from: u32, flag: u32, round: u64) -> Option<f64> {
        let raised = *self.raised[self.flag(from, flag)].get(round as usize)?;
        Some(raised + self.scenario.figures.latency_ns(self.scenario.topology, from, rank))
    }

    fn flag(&self, rank: u32, flag: u32) -> usize {
        let flags = self.scenario.programs[rank as usize].flags;
        (rank * flags + flag) as usize
    }

    /// When `rank` may begin `round`, or who still uses its slot.
    fn slot_free(&self, rank: u32, round: u64) -> Result<f64, u32> {
        let Some(before) = round.checked_sub(u64::from(self.scenario.depth)) else {
            return Ok(0.0);
        };
        let mut latest: f64 = 0.0;
        for (from, state) in (0..).zip(&self.ranks) {
            let finished = state.finished.get(before as usize).ok_or(from)?;
            let figures = &self.scenario.figures;
            let hop = figures.latency_ns(self.scenario.topology, from, rank);
            latest = latest.max(finished + if from == rank { 0.0 } else { hop });
        }
        Ok(latest)
    }

    fn begin(&mut self, rank: u32, at: f64) {
        let state = &mut self.ranks[rank as usize];
        state.now = at;
        state.flights.push(Flight { round: state.begun, step: 0 });
        state.begun += 1;
        self.retire(rank);
    }

    fn step(&mut self, rank: u32, flight: usize, at: f64) {
        let scenario = self.scenario;
        let Flight { round, step } = self.ranks[rank as usize].flights[flight];
        let program = &scenario.programs[rank as usize];
        let page = Page::of(scenario, round);
        let step = &program.steps[step];
        let moved = match step {
            Step::Copy { src, dst } => self.copy(*src, *dst, page),
            Step::Reduce { srcs, dst, last } => self.reduce(srcs, *dst, *last, page),
            Step::Signal { .. } | Step::Wait { .. } => 0,
        };
        let bytes = (moved * T::DTYPE.size()) as f64;
        let cost = scenario.figures.step_ns(scenario.topology, rank, step, bytes);
        let state = &mut self.ranks[rank as usize];
        state.now = at + cost * state.slowness;
        state.left -= 1;
        state.flights[flight].step += 1;
        if let Step::Signal { flag, .. } = *step {
            let late = |delay: &&crate::Delay| {
                (delay.rank, delay.flag, delay.round) == (rank, flag, round)
            };
            let delay = scenario.faults.delayed.iter().find(late).map_or(0.0, |d| d.by_ns);
            let at = state.now + delay;
            let slot = self.flag(rank, flag);
            let raised = &mut self.raised[slot];
            assert_eq!(raised.len() as u64, round, "flags are raised in order of rounds");
            // A late signal holds up those behind it.
            raised.push(raised.last().map_or(at, |before| before.max(at)));
        }
        self.retire(rank);
    }

    /// Finish rounds that have run all steps; rounds end in order.
    fn retire(&mut self, rank: u32) {
        let steps = self.scenario.programs[rank as usize].steps.len();
        let state = &mut self.ranks[rank as usize];
        while state.flights.first().is_some_and(|flight| flight.step == steps) {
            state.flights.remove(0);
            state.finished.push(state.now);
        }
    }

    fn copy(&mut self, src: Span, dst: Span, page: Page) -> usize {
        let values = self.memories[src.rank as usize].read(self.scenario, src, page).to_vec();
        self.memories[dst.rank as usize].write(self.scenario, dst, page, &values);
        values.len()
    }

    fn reduce(&mut self, srcs: &[Span], dst: Span, last: bool, page: Page) -> usize {
        let op = self.scenario.op;
        let mut values: Vec<T> = Vec::new();
        for src in srcs {
            let more = self.memories[src.rank as usize].read(self.scenario, *src, page);
            if values.is_empty() {
                values.extend_from_slice(more);
            } else {
                for (value, more) in values.iter_mut().zip(more) {
                    *value = value.combine(*more, op);
                }
            }
        }
        if last && op == ReduceOp::Avg {
            let ranks = self.scenario.topology.ranks();
            values.iter_mut().for_each(|value| *value = value.divide(ranks));
        }
        self.memories[dst.rank as usize].write(self.scenario, dst, page, &values);
        values.len()
    }
}
