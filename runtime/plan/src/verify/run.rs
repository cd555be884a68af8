//! The symbolic run of one round.

use std::collections::HashMap;

use super::Form;
use super::check::Flags;
use super::contributions::{Ranks, Value};
use super::error::{At, VerifyError, Waiting};
use super::memory::{INITIAL, Memory, Segment};
use crate::{Collective, Place, Program, Span, Step};

/// Run one round; returns the longest chain of signals.
pub(super) fn run(
    collective: Collective,
    form: Form,
    programs: &[Program],
    flags: &Flags,
) -> Result<u32, VerifyError> {
    let mut run = Run::new(collective, form, programs, flags);
    run.finish()?;
    run.check_outputs()?;
    Ok(run.hops.into_iter().max().unwrap_or(0))
}

/// What a raised flag tells: the longest chain of signals so far, and for a barrier the ranks of
/// which the signaller had heard.
#[derive(Clone, Default)]
struct Told {
    hops: u32,
    heard: Vec<u64>,
}

struct Run<'a> {
    collective: Collective,
    form: Form,
    programs: &'a [Program],
    flags: &'a Flags,
    memories: Vec<Memory>,
    /// Next step of each rank.
    next: Vec<usize>,
    /// By flag: what it tells, once raised.
    told: Vec<Option<Told>>,
    /// Ranks that wait, by flag.
    sleeping: HashMap<usize, Vec<u32>>,
    /// By rank: the latest step of each peer that a wait has ordered before this rank.
    seen: Vec<HashMap<u32, u32>>,
    hops: Vec<u32>,
    heard: Vec<Vec<u64>>,
}

impl<'a> Run<'a> {
    fn new(collective: Collective, form: Form, programs: &'a [Program], flags: &'a Flags) -> Self {
        let ranks = programs.len();
        let words = if collective == Collective::Barrier { ranks.div_ceil(64) } else { 0 };
        let mut run = Self {
            collective,
            form,
            programs,
            flags,
            memories: (0..ranks).map(|_| Memory::default()).collect(),
            next: vec![0; ranks],
            told: vec![None; flags.len()],
            sleeping: HashMap::new(),
            seen: vec![HashMap::new(); ranks],
            hops: vec![0; ranks],
            heard: vec![vec![0; words]; ranks],
        };
        for program in programs {
            run.fill_input(program);
        }
        run
    }

    fn ranks(&self) -> u32 {
        self.programs.len() as u32
    }

    fn fill_input(&mut self, program: &Program) {
        let rank = program.rank;
        if let Some(word) = self.heard[rank as usize].get_mut(rank as usize / 64) {
            *word |= 1 << (rank % 64);
        }
        let own = Ranks::one(rank);
        for block in 0..self.collective.input_blocks(rank, self.ranks()) {
            let span = Span { rank, place: Place::Input, block, first: 0, count: program.parts };
            let value = Value { block, ranks: own.clone(), finished: false };
            let segment = Segment { end: program.parts, value, writer: rank, step: INITIAL };
            let fresh = self.memories[rank as usize].write(span, segment);
            debug_assert!(fresh.is_ok(), "{span} is filled once");
        }
    }

    /// The memory a span means: in place, output may be a block of the input or hold it.
    fn actual(&self, span: Span) -> Span {
        if self.form == Form::Apart || span.place != Place::Output {
            return span;
        }
        let (rank, root) = (span.rank, self.collective.root());
        let at_root = root.is_none_or(|root| root == rank);
        let block = match self.collective {
            Collective::AllReduce | Collective::Broadcast { .. } | Collective::Reduce { .. } => 0,
            Collective::AllGather | Collective::Gather { .. } if span.block == rank => 0,
            Collective::ReduceScatter | Collective::Scatter { .. } => rank,
            _ => return span,
        };
        if at_root { Span { place: Place::Input, block, ..span } } else { span }
    }

    fn finish(&mut self) -> Result<(), VerifyError> {
        let mut ready: Vec<u32> = (0..self.ranks()).rev().collect();
        while let Some(rank) = ready.pop() {
            self.advance(rank, &mut ready)?;
        }
        let stuck: Vec<Waiting> = self.programs.iter().filter_map(|p| self.stuck(p)).collect();
        if stuck.is_empty() { Ok(()) } else { Err(VerifyError::Deadlock(stuck)) }
    }

    fn stuck(&self, program: &Program) -> Option<Waiting> {
        let step = self.next[program.rank as usize];
        let at = At { rank: program.rank, step: step as u32 };
        match program.steps.get(step)? {
            Step::Wait { from, flag } => Some(Waiting { at, from: *from, flag: *flag }),
            _ => None,
        }
    }

    /// Run `rank` until it waits or ends; whom it wakes becomes ready.
    fn advance(&mut self, rank: u32, ready: &mut Vec<u32>) -> Result<(), VerifyError> {
        let index = rank as usize;
        let program = &self.programs[index];
        while let Some(step) = program.steps.get(self.next[index]) {
            let at = At { rank, step: self.next[index] as u32 };
            match step {
                Step::Copy { src, dst } => self.copy(at, *src, *dst)?,
                Step::Reduce { srcs, dst, last } => self.reduce(at, srcs, *dst, *last)?,
                Step::Signal { flag, .. } => {
                    let slot = self.flags.index(rank, *flag);
                    let heard = self.heard[index].clone();
                    self.told[slot] = Some(Told { hops: self.hops[index] + 1, heard });
                    ready.extend(self.sleeping.remove(&slot).into_iter().flatten());
                }
                Step::Wait { from, flag } => {
                    let slot = self.flags.index(*from, *flag);
                    let Some(told) = &self.told[slot] else {
                        self.sleeping.entry(slot).or_default().push(rank);
                        return Ok(());
                    };
                    self.hops[index] = self.hops[index].max(told.hops);
                    for (mine, theirs) in self.heard[index].iter_mut().zip(&told.heard) {
                        *mine |= theirs;
                    }
                    let raised = self.flags.raised(*from, *flag).map_or(0, |(step, _)| step);
                    let seen = self.seen[index].entry(*from).or_default();
                    *seen = raised.max(*seen);
                }
            }
            self.next[index] += 1;
        }
        Ok(())
    }

    /// The segment that holds `part` of `span`, if `at` may read it.
    fn read(&self, at: At, span: Span, part: u32) -> Result<&Segment, VerifyError> {
        let actual = self.actual(span);
        let found = self.memories[span.rank as usize].at(actual.place, actual.block, part);
        let Some(segment) = found else {
            let span = span.cut_from(part);
            return Err(VerifyError::ReadBeforeWrite { at, form: self.form, span });
        };
        if segment.writer != at.rank {
            // A wait has seen all steps before the signal.
            let seen = self.seen[at.rank as usize].get(&segment.writer).copied().unwrap_or(0);
            if segment.step >= seen {
                let writer = At { rank: segment.writer, step: segment.step };
                return Err(VerifyError::Unordered { at, span, writer });
            }
        }
        Ok(segment)
    }

    fn write(&mut self, at: At, dst: Span, value: Value) -> Result<(), VerifyError> {
        let actual = self.actual(dst);
        let end = dst.first + dst.count;
        let segment = Segment { end, value, writer: at.rank, step: at.step };
        self.memories[dst.rank as usize].write(actual, segment).map_err(|taken| {
            let first = At { rank: taken.writer, step: taken.step };
            VerifyError::WrittenTwice { at, form: self.form, span: dst, first }
        })
    }

    fn copy(&mut self, at: At, src: Span, dst: Span) -> Result<(), VerifyError> {
        if self.actual(src) == self.actual(dst) {
            return Ok(());
        }
        let end = src.first + src.count;
        let mut part = src.first;
        while part < end {
            let segment = self.read(at, src, part)?;
            let (mut stop, value) = (segment.end.min(end), segment.value.clone());
            // Pieces that hold the same were perhaps written apart; one is enough here.
            while stop < end {
                let more = self.read(at, src, stop)?;
                if more.value != value {
                    break;
                }
                stop = more.end.min(end);
            }
            self.write(at, Span { first: part, count: stop - part, ..dst }, value)?;
            part = stop;
        }
        Ok(())
    }

    fn reduce(&mut self, at: At, srcs: &[Span], dst: Span, last: bool) -> Result<(), VerifyError> {
        let bad = |problem| VerifyError::BadReduce { at, form: self.form, span: dst, problem };
        let end = dst.first + dst.count;
        let mut part = dst.first;
        let mut pieces = Vec::new();
        while part < end {
            let mut values = Vec::with_capacity(srcs.len());
            let mut stop = end;
            for src in srcs {
                let segment = self.read(at, *src, part)?;
                stop = stop.min(segment.end);
                values.push(&segment.value);
            }
            let block = values.first().map_or(0, |value| value.block);
            if values.iter().any(|value| value.block != block) {
                return Err(bad("the sources are of different blocks"));
            }
            if values.iter().any(|value| value.finished) {
                return Err(bad("a source is finished already"));
            }
            let Some(ranks) = Ranks::union(values.iter().map(|value| &value.ranks)) else {
                return Err(bad("a contribution is taken twice"));
            };
            if last != (ranks == Ranks::all(self.ranks())) {
                return Err(bad(if last {
                    "marked as the last, but contributions are missing"
                } else {
                    "holds every contribution, but is not marked as the last"
                }));
            }
            pieces.push((part, stop, Value { block, ranks, finished: last }));
            part = stop;
        }
        for (first, stop, value) in pieces {
            self.write(at, Span { first, count: stop - first, ..dst }, value)?;
        }
        Ok(())
    }

    fn check_outputs(&self) -> Result<(), VerifyError> {
        for program in self.programs {
            let rank = program.rank;
            for block in 0..self.collective.output_blocks(rank, self.ranks()) {
                self.check_output(program, block)?;
            }
            if self.collective == Collective::Barrier {
                let heard = &self.heard[rank as usize];
                let missing = (0..self.ranks())
                    .find(|peer| heard[*peer as usize / 64] & (1 << (peer % 64)) == 0);
                if let Some(missing) = missing {
                    return Err(VerifyError::BarrierLeaks { rank, missing });
                }
            }
        }
        Ok(())
    }

    fn check_output(&self, program: &Program, block: u32) -> Result<(), VerifyError> {
        let rank = program.rank;
        let wanted = self.wanted(rank, block);
        let mut part = 0;
        while part < program.parts {
            let count = program.parts - part;
            let span = Span { rank, place: Place::Output, block, first: part, count };
            let actual = self.actual(span);
            let found = self.memories[rank as usize].at(actual.place, actual.block, part);
            match found {
                Some(segment) if segment.value == wanted => part = segment.end,
                other => {
                    return Err(VerifyError::WrongOutput {
                        form: self.form,
                        span,
                        found: other.map_or("nothing".into(), |s| s.value.to_string()),
                        wanted: wanted.to_string(),
                    });
                }
            }
        }
        Ok(())
    }

    /// What a block of the output must hold.
    fn wanted(&self, rank: u32, block: u32) -> Value {
        let all = || Ranks::all(self.ranks());
        let (block, ranks) = match self.collective {
            Collective::AllReduce | Collective::Reduce { .. } | Collective::Barrier => (0, all()),
            Collective::ReduceScatter => (rank, all()),
            Collective::Broadcast { root } => (0, Ranks::one(root)),
            Collective::AllGather | Collective::Gather { .. } => (0, Ranks::one(block)),
            Collective::Scatter { root } => (rank, Ranks::one(root)),
            Collective::AllToAll => (rank, Ranks::one(block)),
        };
        let finished = self.collective.reduces() && self.ranks() > 1;
        Value { block, ranks, finished }
    }
}

impl Span {
    /// The span from `part` on.
    fn cut_from(self, part: u32) -> Self {
        Self { first: part, count: self.first + self.count - part, ..self }
    }
}
