//! Writes the steps of one rank.

use crate::{Place, Program, Span, Step, Targets, Topology};

/// The steps of one rank while a planner writes them.
///
/// Data goes from one rank to another through a *mailbox*: staging of the sender where both share
/// a node (the receiver pulls), staging of the receiver otherwise (the sender pushes). The two
/// forms have areas of their own, since a rank may use both.
pub(super) struct Builder<'a> {
    pub topology: &'a Topology,
    pub rank: u32,
    pub ranks: u32,
    /// Parts a page is cut into; planners set it before they write steps.
    pub parts: u32,
    steps: Vec<Step>,
}

impl<'a> Builder<'a> {
    pub fn new(topology: &'a Topology, rank: u32) -> Self {
        Self { topology, rank, ranks: topology.ranks(), parts: 1, steps: Vec::with_capacity(32) }
    }

    pub fn finish(self, areas: u32, flags: u32) -> Program {
        Program { rank: self.rank, steps: self.steps, parts: self.parts, areas, flags }
    }

    /// Whether `peer` shares this rank's node.
    pub fn local(&self, peer: u32) -> bool {
        self.topology.same_node(self.rank, peer)
    }

    /// Whether ranks are on several nodes.
    pub fn spread(&self) -> bool {
        self.topology.nodes() > 1
    }

    /// Ranks of this node without this rank, beginning after this rank so that not all ranks turn
    /// to the same one at once.
    pub fn neighbours(&self) -> impl Iterator<Item = u32> + use<'a> {
        let members = self.topology.members(self.topology.node_of(self.rank));
        let own = self.topology.local_index(self.rank) as usize;
        members[own + 1..].iter().chain(&members[..own]).copied()
    }

    /// All ranks without this one, beginning after this rank.
    pub fn others(&self) -> impl Iterator<Item = u32> + use<> {
        let (rank, ranks) = (self.rank, self.ranks);
        (rank + 1..ranks).chain(0..rank)
    }

    /// Ranks of other nodes, beginning after this rank.
    pub fn strangers(&self) -> impl Iterator<Item = u32> + use<'a> {
        let (topology, rank) = (self.topology, self.rank);
        self.others().filter(move |peer| !topology.same_node(rank, *peer))
    }

    /// All parts of a block of the input.
    pub fn input(&self, block: u32) -> Span {
        Span { rank: self.rank, place: Place::Input, block, first: 0, count: self.parts }
    }

    /// All parts of a block of the output.
    pub fn output(&self, block: u32) -> Span {
        Span { rank: self.rank, place: Place::Output, block, first: 0, count: self.parts }
    }

    /// All parts of a staging area of `rank`.
    pub fn area(&self, rank: u32, area: u32) -> Span {
        Span { rank, place: Place::Staging, block: area, first: 0, count: self.parts }
    }

    /// All parts of the mailbox for data that goes from `from` to `to`: area `pulled` of the
    /// sender on one node, area `pushed` of the receiver between nodes.
    pub fn mailbox(&self, from: u32, to: u32, pulled: u32, pushed: u32) -> Span {
        if self.topology.same_node(from, to) {
            self.area(from, pulled)
        } else {
            self.area(to, pushed)
        }
    }

    pub fn copy(&mut self, src: Span, dst: Span) {
        if src.count > 0 {
            self.steps.push(Step::Copy { src, dst });
        }
    }

    /// Combine `srcs`; of one source this is a copy.
    pub fn combine(&mut self, srcs: Vec<Span>, dst: Span, last: bool) {
        match srcs[..] {
            [src] => self.copy(src, dst),
            _ if dst.count == 0 => {}
            _ => self.steps.push(Step::Reduce { srcs, dst, last }),
        }
    }

    pub fn signal(&mut self, flag: u32, to: u32) {
        self.steps.push(Step::Signal { flag, to: Targets::One(to) });
    }

    pub fn signal_all(&mut self, flag: u32) {
        self.steps.push(Step::Signal { flag, to: Targets::All });
    }

    pub fn wait(&mut self, from: u32, flag: u32) {
        self.steps.push(Step::Wait { from, flag });
    }
}

impl Span {
    /// Parts `first .. first + count` of the same memory.
    pub(super) fn cut(self, first: u32, count: u32) -> Self {
        Self { first, count, ..self }
    }
}

/// Smallest number of doublings of 1 that reaches `value`.
pub(super) fn log2_ceil(value: u32) -> u32 {
    value.next_power_of_two().trailing_zeros()
}
