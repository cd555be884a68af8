//! Within nodes, then between nodes, then within nodes again.
//!
//! Work is dealt out by position: what has position i belongs, on each node, to the rank whose
//! local index is i modulo the ranks of that node. So nodes may have different sizes. Between
//! nodes only owners of the same position talk.

use super::Builder;
use super::builder::log2_ceil;
use crate::{Collective, Program, Span, Topology};

pub(super) fn program(collective: Collective, mut b: Builder<'_>) -> Program {
    let deal = Deal::new(b.topology, b.rank);
    match collective {
        Collective::Broadcast { root } => broadcast(&deal, root, &mut b),
        Collective::Reduce { root } => reduce(&deal, root, &mut b),
        Collective::AllGather => all_gather(&deal, &mut b),
        Collective::ReduceScatter => reduce_scatter(&deal, &mut b),
        _ => all_reduce(&deal, &mut b),
    }
    let (nodes, local, rows) = (deal.nodes, deal.positions, deal.rows);
    let levels = log2_ceil(nodes);
    let ranks = b.ranks;
    match collective {
        Collective::Broadcast { .. } => b.finish(2, levels + local),
        Collective::Reduce { .. } => b.finish(1 + levels, 1),
        Collective::AllGather => b.finish(1 + 2 * nodes * rows, nodes + 2 * local),
        Collective::ReduceScatter => b.finish(ranks + nodes, local + nodes * rows),
        _ => b.finish(1 + nodes, 2 * (local + nodes * rows)),
    }
}

/// Who owns what.
struct Deal<'a> {
    topology: &'a Topology,
    /// This rank's node and local index.
    node: u32,
    index: u32,
    nodes: u32,
    /// Positions: the ranks of the largest node.
    positions: u32,
    /// Most positions one rank owns.
    rows: u32,
}

impl<'a> Deal<'a> {
    fn new(topology: &'a Topology, rank: u32) -> Self {
        let positions = topology.largest_node();
        Self {
            topology,
            node: topology.node_of(rank),
            index: topology.local_index(rank),
            nodes: topology.nodes(),
            positions,
            rows: positions.div_ceil(topology.smallest_node()),
        }
    }

    fn size(&self, node: u32) -> u32 {
        self.topology.members(node).len() as u32
    }

    /// Owner of `position` on `node`.
    fn owner(&self, node: u32, position: u32) -> u32 {
        let members = self.topology.members(node);
        members[position as usize % members.len()]
    }

    /// Which of its owner's positions on `node` this is.
    fn row(&self, node: u32, position: u32) -> u32 {
        position / self.size(node)
    }

    /// Positions of `rank`.
    fn owned(&self, rank: u32) -> impl Iterator<Item = u32> + use<> {
        let first = self.topology.local_index(rank);
        (first..self.positions).step_by(self.size(self.topology.node_of(rank)) as usize)
    }

    fn other_nodes(&self) -> impl Iterator<Item = u32> + use<> {
        (self.node + 1..self.nodes).chain(0..self.node)
    }
}

/// Ranks of one's node in order, each with where its data is: `own` for this rank, otherwise
/// `area` of the neighbour.
fn within<'a>(b: &Builder<'a>, own: Span, area: u32) -> impl Iterator<Item = Span> + use<'a> {
    let rank = b.rank;
    let members = b.topology.members(b.topology.node_of(rank));
    let theirs = Span { place: crate::Place::Staging, block: area, ..own };
    members.iter().map(move |m| if *m == rank { own } else { Span { rank: *m, ..theirs } })
}

/// Tell each neighbour, with the flag of its local index after `base`.
fn signal_neighbours(b: &mut Builder<'_>, base: u32) {
    for peer in b.neighbours() {
        b.signal(base + b.topology.local_index(peer), peer);
    }
}

/// A page has a slice for each position, and each slice a part for each node: the owner of the
/// position on that node finishes it.
fn all_reduce(deal: &Deal<'_>, b: &mut Builder<'_>) {
    let (me, nodes) = (b.rank, deal.nodes);
    b.parts = deal.positions * nodes;
    let alone = deal.size(deal.node) == 1;
    // Flags: to neighbours, halves between nodes, results between nodes, to neighbours.
    let half = deal.positions;
    let result = half + nodes * deal.rows;
    let done = result + nodes * deal.rows;
    let flag = |from: u32, position: u32, to: u32| deal.row(from, position) * nodes + to;
    let (input, output) = (b.input(0), b.output(0));
    let outbox = b.area(me, 0);
    let slice = |span: Span, position: u32| span.cut(position * nodes, nodes);
    let part = |span: Span, position: u32, node: u32| span.cut(position * nodes + node, 1);

    if !alone {
        let mut first = 0;
        while first < deal.positions {
            let run =
                (first..deal.positions).take_while(|p| deal.owner(deal.node, *p) != me).count();
            let run = run as u32;
            let (first_part, parts) = (first * nodes, run * nodes);
            b.copy(input.cut(first_part, parts), outbox.cut(first_part, parts));
            first += run + 1;
        }
        signal_neighbours(b, 0);
        for peer in b.neighbours() {
            b.wait(peer, deal.index);
        }
    }
    for position in deal.owned(me) {
        for node in deal.other_nodes() {
            let owner = deal.owner(node, position);
            let srcs = within(b, part(input, position, node), 0).collect();
            b.combine(srcs, part(b.area(owner, 1 + deal.node), position, node), false);
            b.signal(half + flag(deal.node, position, node), owner);
        }
    }
    for position in deal.owned(me) {
        let own = |span: Span| part(span, position, deal.node);
        for node in deal.other_nodes() {
            b.wait(deal.owner(node, position), half + flag(node, position, deal.node));
        }
        let mut srcs = Vec::new();
        for node in 0..nodes {
            if node == deal.node {
                srcs.extend(within(b, own(input), 0));
            } else {
                srcs.push(own(b.area(me, 1 + node)));
            }
        }
        let finished = own(if alone { output } else { outbox });
        b.combine(srcs, finished, true);
        for node in deal.other_nodes() {
            let owner = deal.owner(node, position);
            b.copy(finished, own(b.area(owner, 1 + deal.node)));
            b.signal(result + flag(deal.node, position, node), owner);
        }
    }
    for position in deal.owned(me) {
        for node in deal.other_nodes() {
            b.wait(deal.owner(node, position), result + flag(node, position, deal.node));
            let dst = if alone { output } else { outbox };
            b.copy(part(b.area(me, 1 + node), position, node), part(dst, position, node));
        }
    }
    if alone {
        return;
    }
    signal_neighbours(b, done);
    for position in deal.owned(me) {
        b.copy(slice(outbox, position), slice(output, position));
    }
    for peer in b.neighbours() {
        b.wait(peer, done + deal.index);
        for position in deal.owned(peer) {
            b.copy(slice(b.area(peer, 0), position), slice(output, position));
        }
    }
}

/// Areas: outgoing blocks by number, then what owners on other nodes combined, by node.
fn reduce_scatter(deal: &Deal<'_>, b: &mut Builder<'_>) {
    let (me, ranks) = (b.rank, b.ranks);
    let position = |block: u32| deal.topology.local_index(block);
    let flag = |from: u32, block: u32| {
        let row = deal.row(from, position(block));
        deal.positions + deal.topology.node_of(block) * deal.rows + row
    };
    if deal.size(deal.node) > 1 {
        for block in (0..ranks).filter(|block| deal.owner(deal.node, position(*block)) != me) {
            b.copy(b.input(block), b.area(me, block));
        }
        signal_neighbours(b, 0);
        for peer in b.neighbours() {
            b.wait(peer, deal.index);
        }
    }
    for node in deal.other_nodes() {
        for block in deal.topology.members(node).iter().copied() {
            if deal.owner(deal.node, position(block)) == me {
                let srcs = within(b, b.input(block), block).collect();
                b.combine(srcs, b.area(block, ranks + deal.node), false);
                b.signal(flag(deal.node, block), block);
            }
        }
    }
    for node in deal.other_nodes() {
        b.wait(deal.owner(node, deal.index), flag(node, me));
    }
    let mut srcs = Vec::new();
    for node in 0..deal.nodes {
        if node == deal.node {
            srcs.extend(within(b, b.input(me), me));
        } else {
            srcs.push(b.area(me, ranks + node));
        }
    }
    b.combine(srcs, b.output(0), true);
}

/// Areas: own block, then what owners got from other nodes, then the same for the neighbours.
fn all_gather(deal: &Deal<'_>, b: &mut Builder<'_>) {
    let me = b.rank;
    let alone = deal.size(deal.node) == 1;
    let (own_flag, passed_flag) = (deal.nodes, deal.nodes + deal.positions);
    let passed = 1 + deal.nodes * deal.rows;
    // Slot of `source`'s block at its owner on `node`.
    let slot = |source: u32, node: u32| {
        let row = deal.row(node, deal.topology.local_index(source));
        deal.topology.node_of(source) * deal.rows + row
    };
    // Blocks of other nodes that `rank` of this node owns.
    let blocks_of = |rank: u32| {
        let index = deal.topology.local_index(rank);
        let size = deal.size(deal.node) as usize;
        deal.other_nodes().flat_map(move |node| {
            deal.topology.members(node).iter().copied().skip(index as usize).step_by(size)
        })
    };
    if !alone {
        b.copy(b.input(0), b.area(me, 0));
        signal_neighbours(b, own_flag);
    }
    for node in deal.other_nodes() {
        let owner = deal.owner(node, deal.index);
        b.copy(b.input(0), b.area(owner, 1 + slot(me, node)));
        b.signal(node, owner);
    }
    b.copy(b.input(0), b.output(me));
    for peer in b.neighbours() {
        b.wait(peer, own_flag + deal.index);
        b.copy(b.area(peer, 0), b.output(peer));
    }
    for source in blocks_of(me) {
        b.wait(source, deal.node);
        let slot = slot(source, deal.node);
        let dst = if alone { b.output(source) } else { b.area(me, passed + slot) };
        b.copy(b.area(me, 1 + slot), dst);
    }
    if alone {
        return;
    }
    if blocks_of(me).next().is_some() {
        signal_neighbours(b, passed_flag);
    }
    for source in blocks_of(me) {
        b.copy(b.area(me, passed + slot(source, deal.node)), b.output(source));
    }
    for peer in b.neighbours() {
        let mut blocks = blocks_of(peer).peekable();
        if blocks.peek().is_some() {
            b.wait(peer, passed_flag + deal.index);
        }
        for source in blocks {
            b.copy(b.area(peer, passed + slot(source, deal.node)), b.output(source));
        }
    }
}

/// A binomial tree over nodes, numbered from the root's; each node has one leader.
struct Leaders<'a> {
    deal: &'a Deal<'a>,
    root: u32,
    number: u32,
}

impl<'a> Leaders<'a> {
    fn new(deal: &'a Deal<'a>, root: u32) -> Self {
        let first = deal.topology.node_of(root);
        Self { deal, root, number: (deal.node + deal.nodes - first) % deal.nodes }
    }

    fn of(&self, number: u32) -> u32 {
        let first = self.deal.topology.node_of(self.root);
        if number == 0 {
            self.root
        } else {
            self.deal.topology.members((number + first) % self.deal.nodes)[0]
        }
    }

    fn own(&self) -> u32 {
        self.of(self.number)
    }

    fn level(&self) -> u32 {
        if self.number == 0 { log2_ceil(self.deal.nodes) } else { self.number.trailing_zeros() }
    }

    fn parent(&self) -> Option<u32> {
        (self.number != 0).then(|| self.of(self.number & (self.number - 1)))
    }

    /// Level and leader of each child, smallest subtree first.
    fn children(&self) -> impl DoubleEndedIterator<Item = (u32, u32)> {
        (0..self.level())
            .filter(|level| self.number + (1 << level) < self.deal.nodes)
            .map(|level| (level, self.of(self.number + (1 << level))))
    }
}

/// Areas: pushed to leaders, then for the ranks of the node.
fn broadcast(deal: &Deal<'_>, root: u32, b: &mut Builder<'_>) {
    let leaders = Leaders::new(deal, root);
    let within = log2_ceil(deal.nodes);
    let leader = leaders.own();
    if b.rank != leader {
        b.wait(leader, within + deal.index);
        b.copy(b.area(leader, 1), b.output(0));
        return;
    }
    let src = match leaders.parent() {
        None => b.input(0),
        Some(parent) => {
            b.wait(parent, leaders.level());
            b.area(b.rank, 0)
        }
    };
    for (level, child) in leaders.children().rev() {
        b.copy(src, b.area(child, 0));
        b.signal(level, child);
    }
    if deal.size(deal.node) > 1 {
        b.copy(src, b.area(b.rank, 1));
        signal_neighbours(b, within);
    }
    b.copy(src, b.output(0));
}

/// Areas: for the leader of the node, then pushed to leaders by the level of the child.
fn reduce(deal: &Deal<'_>, root: u32, b: &mut Builder<'_>) {
    let leaders = Leaders::new(deal, root);
    let leader = leaders.own();
    if b.rank != leader {
        b.copy(b.input(0), b.area(b.rank, 0));
        b.signal(0, leader);
        return;
    }
    for peer in b.neighbours() {
        b.wait(peer, 0);
    }
    let mut srcs: Vec<Span> = within(b, b.input(0), 0).collect();
    for (level, child) in leaders.children() {
        b.wait(child, 0);
        srcs.push(b.area(b.rank, 1 + level));
    }
    match leaders.parent() {
        None => b.combine(srcs, b.output(0), true),
        Some(parent) => {
            b.combine(srcs, b.area(parent, 1 + leaders.level()), false);
            b.signal(0, parent);
        }
    }
}
