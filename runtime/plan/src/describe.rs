//! A plan in words, for people.

mod lines;

use std::fmt;
use std::time::Duration;

use crate::{Choice, Collective, Place, Plan, Program, Step, Verdict, format_bytes};

/// Most lines of steps that are shown.
const MOST_LINES: usize = 40;

/// `plan`, to be run as `choice` says, as lines of text: the figures, what else was considered,
/// and the steps of one rank (the root where there is one, otherwise rank 0).
#[must_use]
pub fn describe(plan: &Plan, choice: &Choice) -> String {
    describe_rank(plan, choice, plan.collective().root().unwrap_or(0))
}

/// The same with the steps of `rank`.
///
/// # Panics
///
/// Where `rank` is not a rank of the plan's topology.
#[must_use]
pub fn describe_rank(plan: &Plan, choice: &Choice, rank: u32) -> String {
    Description { plan, choice, rank }.to_string()
}

struct Description<'a> {
    plan: &'a Plan,
    choice: &'a Choice,
    rank: u32,
}

impl fmt::Display for Description<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.rank;
        let program = self.plan.program(rank);
        self.header(f, &program)?;
        self.table(f)?;
        writeln!(
            f,
            "\nsteps of rank {rank} in a round; a page has {}",
            plural(program.parts, "part")
        )?;
        let lines = lines::of(&program);
        for line in lines.iter().take(MOST_LINES) {
            writeln!(f, "  {line}")?;
        }
        if lines.len() > MOST_LINES {
            writeln!(f, "  ... and {} more lines", lines.len() - MOST_LINES)?;
        }
        Ok(())
    }
}

impl Description<'_> {
    fn header(&self, f: &mut fmt::Formatter<'_>, program: &Program) -> fmt::Result {
        let (plan, choice) = (self.plan, self.choice);
        let (topology, bytes) = (plan.topology(), choice.block_bytes());
        let ranks = plural(topology.ranks(), "rank");
        let nodes = plural(topology.nodes(), "node");
        writeln!(f, "{} of {ranks} on {nodes}", plan.collective())?;
        if let Some(root) = plan.collective().root() {
            writeln!(f, "  root          {root}")?;
        }
        let data = plan.collective() != Collective::Barrier;
        if data {
            writeln!(
                f,
                "  block         {} ({} {})",
                format_bytes(bytes),
                choice.count,
                choice.dtype
            )?;
        }
        writeln!(f, "  algorithm     {}", plan.algorithm())?;
        if data {
            writeln!(f, "  page          {}", format_bytes(choice.page_bytes()))?;
            writeln!(f, "  rounds        {}, up to {} in flight", choice.rounds, choice.depth)?;
            let areas = plural(program.areas, "area");
            writeln!(
                f,
                "  staging       {} a rank, {areas} a page",
                format_bytes(choice.staging_bytes)
            )?;
        }
        let (predicted, bound) = (choice.predicted, choice.lower_bound);
        write!(f, "  predicted     {}", time(predicted))?;
        if bound.is_zero() {
            writeln!(f)?;
        } else {
            let times = predicted.as_secs_f64() / bound.as_secs_f64();
            writeln!(f, ", {times:.1} times the lower bound")?;
        }
        writeln!(f, "  lower bound   {}", time(bound))?;
        if !data {
            return Ok(());
        }
        let traffic = Traffic::of(program);
        let share = |parts: u64| {
            format_bytes((u128::from(parts) * u128::from(bytes) / u128::from(program.parts)) as u64)
        };
        let (pulled, pushed) = (share(traffic.pulled), share(traffic.pushed));
        writeln!(
            f,
            "  rank {} reads {pulled} from peers' staging and pushes {pushed}",
            program.rank
        )
    }

    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n  {:<13} {:>10} {:>10} {:>6}", "considered", "predicted", "page", "depth")?;
        for row in &self.choice.considered {
            let mark = if row.algorithm == self.choice.algorithm { '*' } else { ' ' };
            let name = row.algorithm;
            match &row.verdict {
                Verdict::Possible { page_elements, depth, predicted } => {
                    let page =
                        format_bytes(*page_elements as u64 * self.choice.dtype.size() as u64);
                    let predicted = time(*predicted);
                    writeln!(f, "{mark} {name:<13} {predicted:>10} {page:>10} {depth:>6}")?;
                }
                Verdict::Impossible(reason) => writeln!(f, "{mark} {name:<13} {reason}")?,
            }
        }
        Ok(())
    }
}

/// Parts a rank reads of peers' staging, and writes to it, in a round.
struct Traffic {
    pulled: u64,
    pushed: u64,
}

impl Traffic {
    fn of(program: &Program) -> Self {
        let mut traffic = Self { pulled: 0, pushed: 0 };
        let theirs = |span: &crate::Span| span.rank != program.rank && span.place == Place::Staging;
        for step in &program.steps {
            let (srcs, dst) = match step {
                Step::Copy { src, dst } => (std::slice::from_ref(src), dst),
                Step::Reduce { srcs, dst, .. } => (&srcs[..], dst),
                Step::Signal { .. } | Step::Wait { .. } => continue,
            };
            let pulls = srcs.iter().filter(|src| theirs(src)).count() as u64;
            traffic.pulled += pulls * u64::from(dst.count);
            traffic.pushed += u64::from(theirs(dst)) * u64::from(dst.count);
        }
        traffic
    }
}

fn plural(number: u32, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

fn time(time: Duration) -> String {
    let ns = time.as_nanos() as f64;
    match ns {
        _ if ns < 1e3 => format!("{ns} ns"),
        _ if ns < 1e6 => format!("{:.2} us", ns / 1e3),
        _ if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}
