//! A binomial tree: log2 of the ranks levels, whatever the root.
//!
//! Ranks are numbered from the root. The children of number v are v + 2^k for every 2^k below its
//! lowest set bit; the subtree of v + 2^k are the 2^k numbers from there.

use super::Builder;
use super::builder::log2_ceil;
use crate::{Collective, Program, Span};

pub(super) fn program(collective: Collective, mut b: Builder<'_>) -> Program {
    let levels = log2_ceil(b.ranks);
    let pushed = if b.spread() { 1 } else { 0 };
    let ranks = b.ranks;
    match collective {
        Collective::Broadcast { root } => {
            let tree = Tree::new(root, &b);
            let src = tree.get(&mut b, Boxes { pulled: 0, pushed: 1, flag: 0 });
            tree.give(src, &mut b, Boxes { pulled: 0, pushed: 1, flag: 0 });
            b.finish(1 + pushed, levels)
        }
        Collective::Reduce { root } => {
            Tree::new(root, &b).reduce(&mut b, 1, None);
            b.finish(1 + levels * pushed, 1)
        }
        Collective::Gather { root } => {
            Tree::new(root, &b).gather(&mut b);
            b.finish(ranks * (1 + pushed), 1)
        }
        Collective::Scatter { root } => {
            Tree::new(root, &b).scatter(&mut b);
            b.finish(ranks * (1 + pushed), levels)
        }
        Collective::Barrier => {
            for level in 0..levels {
                let distance = 1 << level;
                b.signal(level, (b.rank + distance) % ranks);
                b.wait((b.rank + ranks - distance) % ranks, level);
            }
            b.finish(0, levels)
        }
        _ => {
            let tree = Tree::new(0, &b);
            let down = Boxes { pulled: 1, pushed: 2 + levels, flag: 1 };
            if b.rank == 0 {
                let staged = tree.children().any(|(_, child)| b.local(child));
                let result = if staged { b.area(0, down.pulled) } else { b.output(0) };
                tree.reduce(&mut b, 2, Some(result));
                tree.give(result, &mut b, down);
            } else {
                tree.reduce(&mut b, 2, None);
                let src = tree.get(&mut b, down);
                tree.give(src, &mut b, down);
            }
            b.finish(2 + (levels + 1) * pushed, 1 + levels)
        }
    }
}

/// A rank's place in the tree.
#[derive(Clone, Copy)]
struct Tree {
    root: u32,
    ranks: u32,
    number: u32,
    levels: u32,
}

/// Areas and first flag of data that goes down.
#[derive(Clone, Copy)]
struct Boxes {
    pulled: u32,
    pushed: u32,
    flag: u32,
}

impl Tree {
    fn new(root: u32, b: &Builder<'_>) -> Self {
        let number = (b.rank + b.ranks - root) % b.ranks;
        Self { root, ranks: b.ranks, number, levels: log2_ceil(b.ranks) }
    }

    fn rank(self, number: u32) -> u32 {
        (number + self.root) % self.ranks
    }

    /// Level at which this rank hangs: its subtree has at most 2^level ranks.
    fn level(self) -> u32 {
        if self.number == 0 { self.levels } else { self.number.trailing_zeros() }
    }

    /// Parent's rank; none for the root.
    fn parent(self) -> Option<u32> {
        (self.number != 0).then(|| self.rank(self.number & (self.number - 1)))
    }

    /// Level and rank of each child, smallest subtree first.
    fn children(self) -> impl DoubleEndedIterator<Item = (u32, u32)> + use<> {
        (0..self.level())
            .filter(move |level| self.number + (1 << level) < self.ranks)
            .map(move |level| (level, self.rank(self.number + (1 << level))))
    }

    /// Ranks of the subtree that begins at number `first` and hangs at `level`.
    fn subtree(self, first: u32, level: u32) -> impl Iterator<Item = u32> + use<> {
        (first..self.ranks.min(first + (1 << level))).map(move |number| self.rank(number))
    }

    /// Combine own input and the children's results for the parent, or into `result` at the
    /// root. What a child at level k pushes goes to area `pushed + k`.
    fn reduce(self, b: &mut Builder<'_>, pushed: u32, result: Option<Span>) {
        let mut srcs = vec![b.input(0)];
        for (level, child) in self.children() {
            b.wait(child, 0);
            srcs.push(b.mailbox(child, b.rank, 0, pushed + level));
        }
        match self.parent() {
            Some(parent) => {
                let dst = b.mailbox(b.rank, parent, 0, pushed + self.level());
                b.combine(srcs, dst, false);
                b.signal(0, parent);
            }
            None => b.combine(srcs, result.unwrap_or(b.output(0)), true),
        }
    }

    /// Where the parent's data is, once it is there; the input at the root.
    fn get(self, b: &mut Builder<'_>, boxes: Boxes) -> Span {
        match self.parent() {
            None => b.input(0),
            Some(parent) => {
                b.wait(parent, boxes.flag + self.level());
                b.mailbox(parent, b.rank, boxes.pulled, boxes.pushed)
            }
        }
    }

    /// Give `src` to the children, largest subtree first, and to the own output.
    fn give(self, src: Span, b: &mut Builder<'_>, boxes: Boxes) {
        let own = b.area(b.rank, boxes.pulled);
        if src != own && self.children().any(|(_, child)| b.local(child)) {
            b.copy(src, own);
        }
        for (level, child) in self.children().rev() {
            if !b.local(child) {
                b.copy(src, b.area(child, boxes.pushed));
            }
            b.signal(boxes.flag + level, child);
        }
        if src != b.output(0) {
            b.copy(src, b.output(0));
        }
    }

    /// Blocks go up; each has an area of its own.
    fn gather(self, b: &mut Builder<'_>) {
        let parent = self.parent();
        let ranks = self.ranks;
        let target = |block: u32, b: &Builder<'_>| match parent {
            None => b.output(block),
            Some(parent) => b.mailbox(b.rank, parent, block, ranks + block),
        };
        b.copy(b.input(0), target(b.rank, b));
        for (level, child) in self.children() {
            b.wait(child, 0);
            for block in self.subtree(self.number + (1 << level), level) {
                b.copy(b.mailbox(child, b.rank, block, ranks + block), target(block, b));
            }
        }
        if let Some(parent) = parent {
            b.signal(0, parent);
        }
    }

    /// Blocks go down; each has an area of its own.
    fn scatter(self, b: &mut Builder<'_>) {
        let ranks = self.ranks;
        let parent = self.parent();
        if let Some(parent) = parent {
            b.wait(parent, self.level());
        }
        let source = |block: u32, b: &Builder<'_>| match parent {
            None => b.input(block),
            Some(parent) => b.mailbox(parent, b.rank, block, ranks + block),
        };
        for (level, child) in self.children().rev() {
            for block in self.subtree(self.number + (1 << level), level) {
                b.copy(source(block, b), b.mailbox(b.rank, child, block, ranks + block));
            }
            b.signal(level, child);
        }
        b.copy(source(b.rank, b), b.output(0));
    }
}
