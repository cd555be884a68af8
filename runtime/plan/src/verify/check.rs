//! What can be seen without running: bounds, whose memory a step touches, signals and waits.

use super::error::{At, VerifyError, Waiting};
use crate::{Collective, MAX_FLAGS, Place, Program, Span, Step, Targets, Topology};

/// Where each flag of each rank is raised, and for whom.
pub(super) struct Flags {
    flags: u32,
    raised: Vec<Option<(u32, Targets)>>,
}

impl Flags {
    /// Step at which `rank` raises `flag`, if it does.
    pub fn raised(&self, rank: u32, flag: u32) -> Option<(u32, Targets)> {
        self.raised[self.index(rank, flag)]
    }

    pub fn index(&self, rank: u32, flag: u32) -> usize {
        rank as usize * self.flags as usize + flag as usize
    }

    pub fn len(&self) -> usize {
        self.raised.len()
    }
}

pub(super) fn check(
    collective: Collective,
    topology: &Topology,
    programs: &[Program],
) -> Result<Flags, VerifyError> {
    let ranks = topology.ranks();
    let bad = |index: u32, problem| Err(VerifyError::BadProgram { index, problem });
    let Some(first) = programs.first().filter(|_| programs.len() == ranks as usize) else {
        return bad(programs.len() as u32, "there must be one program for each rank");
    };
    let flags = first.flags;
    // Before a table is made for them.
    if flags > MAX_FLAGS {
        return bad(0, "has more than 65,536 flags");
    }
    let slots = ranks as usize * flags as usize;
    let mut table = Flags { flags, raised: vec![None; slots] };
    let mut waits: Vec<Vec<(u32, u32)>> = vec![Vec::new(); ranks as usize];
    for (rank, program) in (0..ranks).zip(programs) {
        if program.rank != rank {
            return bad(rank, "is of another rank");
        }
        if program.parts == 0 {
            return bad(rank, "has no parts");
        }
        if (program.parts, program.areas, program.flags) != (first.parts, first.areas, flags) {
            return bad(rank, "parts, areas or flags differ from those of program 0");
        }
        let rules = Rules { collective, topology, program };
        for (index, step) in (0..).zip(&program.steps) {
            let at = At { rank, step: index };
            match step {
                Step::Copy { src, dst } => {
                    rules.check_source(at, *src, *dst)?;
                    rules.check_target(at, *dst)?;
                }
                Step::Reduce { srcs, dst, .. } => {
                    if srcs.len() < 2 {
                        return Err(bad_step(at, "reduces fewer than two sources"));
                    }
                    if !collective.reduces() {
                        return Err(bad_step(at, "reduces in a collective that does not"));
                    }
                    for src in srcs {
                        rules.check_source(at, *src, *dst)?;
                    }
                    rules.check_target(at, *dst)?;
                }
                Step::Signal { flag, to } => {
                    rules.check_flag(at, *flag)?;
                    if let Targets::One(to) = *to {
                        rules.check_peer(at, to)?;
                    }
                    let slot = table.index(rank, *flag);
                    if table.raised[slot].replace((index, *to)).is_some() {
                        return Err(VerifyError::RaisedTwice { at, flag: *flag });
                    }
                }
                Step::Wait { from, flag } => {
                    rules.check_flag(at, *flag)?;
                    rules.check_peer(at, *from)?;
                    waits[rank as usize].push((*from, *flag));
                }
            }
        }
    }
    check_waits(&table, programs, &mut waits)?;
    check_signals(programs, &waits)?;
    Ok(table)
}

fn bad_step(at: At, problem: &'static str) -> VerifyError {
    VerifyError::BadStep { at, problem }
}

/// Every wait has its signal, and none is repeated. Sorts the waits of each rank.
fn check_waits(
    table: &Flags,
    programs: &[Program],
    waits: &mut [Vec<(u32, u32)>],
) -> Result<(), VerifyError> {
    for (program, waits) in programs.iter().zip(waits) {
        let rank = program.rank;
        let waiting = |from, flag| {
            let is_it = |s: &Step| *s == Step::Wait { from, flag };
            let step = program.steps.iter().rposition(is_it).unwrap_or(0) as u32;
            Waiting { at: At { rank, step }, from, flag }
        };
        for (from, flag) in waits.iter().copied() {
            match table.raised(from, flag) {
                Some((_, Targets::All)) => {}
                Some((_, Targets::One(to))) if to == rank => {}
                _ => return Err(VerifyError::UnmatchedWait(waiting(from, flag))),
            }
        }
        waits.sort_unstable();
        if let Some(pair) = waits.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(VerifyError::RepeatedWait(waiting(pair[0].0, pair[0].1)));
        }
    }
    Ok(())
}

/// Whoever is told by name waits.
fn check_signals(programs: &[Program], waits: &[Vec<(u32, u32)>]) -> Result<(), VerifyError> {
    for program in programs {
        for (step, s) in (0..).zip(&program.steps) {
            if let Step::Signal { flag, to: Targets::One(to) } = *s
                && waits[to as usize].binary_search(&(program.rank, flag)).is_err()
            {
                let at = At { rank: program.rank, step };
                return Err(VerifyError::UnheardSignal { at, flag, to });
            }
        }
    }
    Ok(())
}

struct Rules<'a> {
    collective: Collective,
    topology: &'a Topology,
    program: &'a Program,
}

impl Rules<'_> {
    fn check_flag(&self, at: At, flag: u32) -> Result<(), VerifyError> {
        if flag < self.program.flags {
            Ok(())
        } else {
            Err(bad_step(at, "uses a flag that the program does not declare"))
        }
    }

    fn check_peer(&self, at: At, peer: u32) -> Result<(), VerifyError> {
        if peer >= self.topology.ranks() {
            Err(bad_step(at, "names a rank that does not exist"))
        } else if peer == at.rank {
            Err(bad_step(at, "signals to itself or waits for itself"))
        } else {
            Ok(())
        }
    }

    fn check_bounds(&self, at: At, span: Span) -> Result<(), VerifyError> {
        let ranks = self.topology.ranks();
        let bad = |problem| Err(VerifyError::BadSpan { at, span, problem });
        if span.rank >= ranks {
            return bad("the rank does not exist");
        }
        let (blocks, problem) = match span.place {
            Place::Input => {
                (self.collective.input_blocks(span.rank, ranks), "the input has no such block")
            }
            Place::Output => {
                (self.collective.output_blocks(span.rank, ranks), "the output has no such block")
            }
            Place::Staging => (self.program.areas, "there is no such staging area"),
        };
        if span.block >= blocks {
            return bad(problem);
        }
        match span.first.checked_add(span.count) {
            Some(end) if span.count > 0 && end <= self.program.parts => Ok(()),
            _ => bad("the parts are empty or leave the page"),
        }
    }

    /// A rank reads its own memory, and staging of ranks of its node.
    fn check_source(&self, at: At, src: Span, dst: Span) -> Result<(), VerifyError> {
        self.check_bounds(at, src)?;
        let bad = |problem| Err(VerifyError::BadSpan { at, span: src, problem });
        if src.rank != at.rank {
            if src.place != Place::Staging {
                return bad("input and output of a peer are its own");
            }
            if !self.topology.same_node(src.rank, at.rank) {
                return bad("staging of another node cannot be read; its rank must push");
            }
        }
        if (src.first, src.count) != (dst.first, dst.count) {
            return bad("source and target differ in parts, so perhaps in length");
        }
        Ok(())
    }

    /// A rank writes its own memory, and staging of ranks of other nodes.
    fn check_target(&self, at: At, dst: Span) -> Result<(), VerifyError> {
        self.check_bounds(at, dst)?;
        let bad = |problem| Err(VerifyError::BadSpan { at, span: dst, problem });
        if dst.place == Place::Input {
            return bad("the input is never written");
        }
        if dst.rank != at.rank {
            if dst.place != Place::Staging {
                return bad("input and output of a peer are its own");
            }
            if self.topology.same_node(dst.rank, at.rank) {
                return bad("staging of the same node is not pushed to; its rank pulls");
            }
        }
        Ok(())
    }
}
