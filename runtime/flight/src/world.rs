//! The ranks of communicators, put side by side: who is in what, and who is behind.

use std::collections::BTreeMap;

use crate::{Found, Operation, Phase, Snapshot, State};

/// Time after which it is told that a rank is waited for: shorter waits are how ranks work.
pub const LONG_NS: u64 = 500_000_000;

/// The ranks of one communicator that were found.
#[derive(Debug)]
pub struct World<'a> {
    /// Its name.
    pub name: &'a str,
    /// Number of the job.
    pub job: u64,
    /// Ranks it has.
    pub ranks: u32,
    /// Those that were found, in order of rank.
    pub found: Vec<Member<'a>>,
}

/// One rank.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Process and record.
    pub process: &'a Found,
    /// What the record says.
    pub snapshot: &'a Snapshot,
}

impl Member<'_> {
    /// Rank.
    #[must_use]
    pub const fn rank(&self) -> u32 {
        self.snapshot.header.rank
    }

    /// Nanoseconds since `ticks`, where the clock is known.
    fn ago_ns(&self, ticks: u64) -> u64 {
        self.snapshot.timeline.map_or(0, |line| line.ago_ns(ticks))
    }

    fn title(&self, operation: &Operation) -> String {
        operation.title(&self.snapshot.header.words)
    }

    /// Kind, size and so on, without what may differ between ranks.
    fn call(&self, operation: &Operation) -> String {
        let words = &self.snapshot.header.words;
        let mut text = words.kind(operation.kind);
        for word in [words.op(operation.op), words.dtype(operation.dtype)].into_iter().flatten() {
            text += " ";
            text += &word;
        }
        if let Some(root) = operation.with {
            text += &format!(" root {root}");
        }
        text + &format!(" of {} elements", operation.count)
    }
}

/// Communicators, in the order of their first processes.
#[must_use]
pub fn worlds(found: &[Found]) -> Vec<World<'_>> {
    let mut groups: BTreeMap<(u64, &str, u32), Vec<Member<'_>>> = BTreeMap::new();
    for process in found {
        if let Ok(snapshot) = &process.snapshot {
            let header = &snapshot.header;
            let key = (header.job, header.communicator.as_str(), header.ranks);
            groups.entry(key).or_default().push(Member { process, snapshot });
        }
    }
    let mut worlds: Vec<_> = groups
        .into_iter()
        .map(|((job, name, ranks), mut found)| {
            found.sort_by_key(|member| (member.rank(), member.process.pid));
            World { name, job, ranks, found }
        })
        .collect();
    worlds.sort_by_key(|world| world.found.first().map(|member| member.process.pid));
    worlds
}

impl World<'_> {
    /// What seems wrong, one sentence each. Empty where every rank gets on. `all`: every process was
    /// looked at, so a rank without a record is worth telling.
    #[must_use]
    pub fn findings(&self, all: bool) -> Vec<String> {
        let mut findings = Vec::new();
        if all {
            self.find_missing(&mut findings);
        }
        self.find_stopped(&mut findings);
        self.find_failed(&mut findings);
        self.find_different(&mut findings);
        self.find_behind(&mut findings);
        self.find_unmatched(&mut findings);
        findings
    }

    fn find_missing(&self, findings: &mut Vec<String>) {
        let here: Vec<u32> = self.found.iter().map(Member::rank).collect();
        // A number that a record made up is not counted up to.
        let missing = (self.ranks as usize).saturating_sub(here.len());
        if missing > 0 {
            let first: Vec<String> = (0..self.ranks)
                .filter(|rank| !here.contains(rank))
                .take(8)
                .map(|rank| rank.to_string())
                .collect();
            let more = if missing > first.len() { ", ..." } else { "" };
            findings.push(format!(
                "no record of rank {}{more}: ended, on another host, of another user, or with its record off",
                first.join(", ")
            ));
        }
    }

    fn find_stopped(&self, findings: &mut Vec<String>) {
        for member in &self.found {
            let Found { pid, is_owner, kernel_state, .. } = member.process;
            if matches!(kernel_state, 'T' | 't') {
                let rank = member.rank();
                findings.push(format!(
                    "rank {rank} (pid {pid}) is stopped: kill -CONT {pid} lets it go on"
                ));
            }
            if !is_owner {
                findings.push(format!(
                    "rank {} has ended; pid {pid}, which was forked from it, holds its record",
                    member.rank()
                ));
            }
        }
    }

    fn find_failed(&self, findings: &mut Vec<String>) {
        for member in &self.found {
            let header = &member.snapshot.header;
            if header.state == State::Failed {
                let blamed = match header.culprit {
                    Some(culprit) => format!(" and blames rank {culprit}"),
                    None => String::new(),
                };
                findings.push(format!("rank {} has failed{blamed}", header.rank));
            }
        }
    }

    /// Collectives that have not ended and that ranks called differently.
    fn find_different(&self, findings: &mut Vec<String>) {
        let mut calls: BTreeMap<u64, Vec<(u32, String)>> = BTreeMap::new();
        for member in &self.found {
            for operation in member.snapshot.live() {
                if let Some(number) = operation.collective {
                    calls.entry(number).or_default().push((member.rank(), member.call(operation)));
                }
            }
        }
        for (number, calls) in calls {
            let Some((first, call)) = calls.first() else { continue };
            if let Some((other, differs)) = calls.iter().find(|(_, c)| c != call) {
                findings.push(format!(
                    "collective {number}: rank {first} called {call}, rank {other} called {differs}"
                ));
            }
        }
    }

    /// Ranks that have not called a collective that others wait in.
    fn find_behind(&self, findings: &mut Vec<String>) {
        for late in &self.found {
            let next = late.snapshot.header.collectives;
            let waits = self.found.iter().find_map(|other| {
                let operation = other.snapshot.live().find(|o| o.collective == Some(next))?;
                let ago = other.ago_ns(operation.called);
                (ago >= LONG_NS).then_some((other, operation, ago))
            });
            if let Some((other, operation, ago)) = waits {
                let title = other.title(operation);
                let last = match late.snapshot.last_ended() {
                    Some(last) => format!(
                        "; its last, {}, ended {} ago",
                        late.title(last),
                        duration(late.ago_ns(last.ended.unwrap_or(0)))
                    ),
                    None => String::new(),
                };
                findings.push(format!(
                    "rank {} has not called collective {next}: rank {} called it {} ago ({title}){last}",
                    late.rank(), other.rank(), duration(ago)
                ));
            }
        }
    }

    /// Sends and receives whose other side has not been called.
    fn find_unmatched(&self, findings: &mut Vec<String>) {
        for member in &self.found {
            for operation in member.snapshot.live() {
                let ago = member.ago_ns(operation.called);
                let (None, Some(peer)) = (operation.collective, operation.with) else { continue };
                let Some(other) = self.found.iter().find(|m| m.rank() == peer) else { continue };
                let answers = other.snapshot.live().any(|o| {
                    o.collective.is_none()
                        && o.with == Some(member.rank())
                        && o.kind != operation.kind
                });
                if ago >= LONG_NS && !answers && operation.phase == Phase::Running {
                    findings.push(format!(
                        "rank {}: {} for {}, and rank {peer} has called nothing that answers it",
                        member.rank(),
                        member.title(operation),
                        duration(ago)
                    ));
                }
            }
        }
    }
}

/// A time in four characters or a few more: `350 ns`, `1.20 ms`, `12.3 s`.
#[must_use]
pub fn duration(ns: u64) -> String {
    const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (unit, size) =
        UNITS.into_iter().rev().find(|(_, size)| ns as f64 >= *size).unwrap_or(UNITS[0]);
    let value = ns as f64 / size;
    match value {
        _ if unit == "ns" => format!("{ns} ns"),
        _ if value < 10.0 => format!("{value:.2} {unit}"),
        _ if value < 100.0 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}
