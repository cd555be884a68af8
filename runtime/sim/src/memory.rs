//! The memory of one rank.

use std::ops::Range;

use stepccl_plan::{Collective, Place, Program, Span, boundary};

use crate::{Element, Scenario};

/// Input, output and staging of a rank.
pub(crate) struct Memory<T> {
    rank: u32,
    input: Vec<T>,
    output: Vec<T>,
    staging: Vec<T>,
}

/// Elements of one round.
#[derive(Clone, Copy)]
pub(crate) struct Page {
    pub round: u64,
    pub first: usize,
    pub len: usize,
}

impl Page {
    pub fn of(scenario: &Scenario<'_>, round: u64) -> Self {
        let first = round as usize * scenario.page;
        Self { round, first, len: scenario.page.min(scenario.count.saturating_sub(first)) }
    }

    /// Elements of a span within the page.
    pub fn range<T: Element>(self, span: Span, parts: u32) -> Range<usize> {
        let at = |index| boundary(index, parts, self.len, T::DTYPE);
        at(span.first)..at(span.first + span.count)
    }
}

/// How output lies in input, or the other way round, where both are one.
enum Shared {
    /// The output is this block of the input.
    OutputInInput(u32),
    /// The input is this block of the output.
    InputInOutput(u32),
    No,
}

fn shared(scenario: &Scenario<'_>, rank: u32) -> Shared {
    let here = scenario.collective.root().is_none_or(|root| root == rank);
    if !scenario.in_place || !here {
        return Shared::No;
    }
    match scenario.collective {
        Collective::AllReduce | Collective::Broadcast { .. } | Collective::Reduce { .. } => {
            Shared::OutputInInput(0)
        }
        Collective::ReduceScatter | Collective::Scatter { .. } => Shared::OutputInInput(rank),
        Collective::AllGather | Collective::Gather { .. } => Shared::InputInOutput(rank),
        _ => Shared::No,
    }
}

impl<T: Element> Memory<T> {
    pub fn new(scenario: &Scenario<'_>, program: &Program, input: &[T]) -> Self {
        let rank = program.rank;
        let blocks = scenario.collective.output_blocks(rank, scenario.topology.ranks());
        let mut output = vec![T::GARBAGE; blocks as usize * scenario.count];
        if let Shared::InputInOutput(block) = shared(scenario, rank) {
            let first = block as usize * scenario.count;
            output[first..first + input.len()].copy_from_slice(input);
        }
        let staging = scenario.depth as usize * program.areas as usize * scenario.page;
        Self { rank, input: input.to_vec(), output, staging: vec![T::GARBAGE; staging] }
    }

    /// The memory a span means, and its first element there.
    fn resolve(&self, scenario: &Scenario<'_>, span: Span, page: Page) -> (Place, usize) {
        let areas = scenario.programs[self.rank as usize].areas as usize;
        let block = span.block as usize;
        match (span.place, shared(scenario, self.rank)) {
            (Place::Staging, _) => {
                let slot = (page.round % u64::from(scenario.depth)) as usize;
                (Place::Staging, (slot * areas + block) * scenario.page)
            }
            (Place::Output, Shared::OutputInInput(inside)) => {
                (Place::Input, inside as usize * scenario.count + page.first)
            }
            (Place::Input, Shared::InputInOutput(inside)) => {
                (Place::Output, inside as usize * scenario.count + page.first)
            }
            (place, _) => (place, block * scenario.count + page.first),
        }
    }

    pub fn read(&self, scenario: &Scenario<'_>, span: Span, page: Page) -> &[T] {
        let (place, first) = self.resolve(scenario, span, page);
        let parts = scenario.programs[self.rank as usize].parts;
        let range = page.range::<T>(span, parts);
        let memory = match place {
            Place::Input => &self.input,
            Place::Output => &self.output,
            Place::Staging => &self.staging,
        };
        &memory[first + range.start..first + range.end]
    }

    pub fn write(&mut self, scenario: &Scenario<'_>, span: Span, page: Page, values: &[T]) {
        let (place, first) = self.resolve(scenario, span, page);
        let parts = scenario.programs[self.rank as usize].parts;
        let range = page.range::<T>(span, parts);
        let memory = match place {
            Place::Input => &mut self.input,
            Place::Output => &mut self.output,
            Place::Staging => &mut self.staging,
        };
        memory[first + range.start..first + range.end].copy_from_slice(values);
    }

    pub fn into_output(self, scenario: &Scenario<'_>) -> Vec<T> {
        match shared(scenario, self.rank) {
            Shared::OutputInInput(block) => {
                let first = block as usize * scenario.count;
                self.input[first..first + scenario.count].to_vec()
            }
            _ => self.output,
        }
    }
}
