//! Data goes around the ring of ranks, each rank passing on what it got.

use super::Builder;
use crate::{Collective, Program, Span};

pub(super) fn program(collective: Collective, mut b: Builder<'_>) -> Program {
    let ranks = b.ranks;
    // Pulled areas first, as many pushed ones behind them where there are several nodes.
    let forms = if b.spread() { 2 } else { 1 };
    match collective {
        Collective::Broadcast { root } => {
            broadcast(&mut b, root);
            b.finish(forms, 1)
        }
        Collective::Reduce { root } => {
            reduce(&mut b, root);
            b.finish(forms, 1)
        }
        Collective::AllGather => {
            all_gather(&mut b);
            b.finish(forms * ranks, ranks - 1)
        }
        Collective::ReduceScatter => {
            reduce_scatter(&mut b);
            b.finish(forms * ranks, ranks - 1)
        }
        _ => {
            all_reduce(&mut b);
            b.finish(forms * 2, 2 * (ranks - 1))
        }
    }
}

/// A rank's place in the ring.
#[derive(Clone, Copy)]
struct Ring {
    ranks: u32,
    rank: u32,
    next: u32,
    previous: u32,
    areas: u32,
}

impl Ring {
    fn new(b: &Builder<'_>, areas: u32) -> Self {
        let (rank, ranks) = (b.rank, b.ranks);
        Self { ranks, rank, next: (rank + 1) % ranks, previous: (rank + ranks - 1) % ranks, areas }
    }

    /// Rank `steps` before this one.
    fn before(self, steps: u32) -> u32 {
        (self.rank + self.ranks - steps % self.ranks) % self.ranks
    }

    fn outbox(self, b: &Builder<'_>, area: u32) -> Span {
        b.mailbox(self.rank, self.next, area, self.areas + area)
    }

    fn inbox(self, b: &Builder<'_>, area: u32) -> Span {
        b.mailbox(self.previous, self.rank, area, self.areas + area)
    }
}

fn all_reduce(b: &mut Builder<'_>) {
    b.parts = b.ranks;
    let ring = Ring::new(b, 2);
    let input = b.input(0);
    let output = b.output(0);
    // Chunk c starts at rank c and is complete at rank c - 1.
    b.copy(input.cut(b.rank, 1), ring.outbox(b, 0).cut(b.rank, 1));
    b.signal(0, ring.next);
    for step in 1..b.ranks - 1 {
        let chunk = ring.before(step);
        b.wait(ring.previous, step - 1);
        let srcs = vec![ring.inbox(b, 0).cut(chunk, 1), input.cut(chunk, 1)];
        b.combine(srcs, ring.outbox(b, 0).cut(chunk, 1), false);
        b.signal(step, ring.next);
    }
    let (chunk, base) = (ring.next, b.ranks - 1);
    b.wait(ring.previous, base - 1);
    let srcs = vec![ring.inbox(b, 0).cut(chunk, 1), input.cut(chunk, 1)];
    // Complete where it can be read most cheaply: the neighbour pulls it from here.
    let outbox = ring.outbox(b, 1).cut(chunk, 1);
    if b.local(ring.next) {
        b.combine(srcs, outbox, true);
        b.signal(base, ring.next);
        b.copy(outbox, output.cut(chunk, 1));
    } else {
        b.combine(srcs, output.cut(chunk, 1), true);
        b.copy(output.cut(chunk, 1), outbox);
        b.signal(base, ring.next);
    }
    for step in 1..b.ranks {
        let chunk = ring.before(step - 1);
        let src = ring.inbox(b, 1).cut(chunk, 1);
        b.wait(ring.previous, base + step - 1);
        if step < b.ranks - 1 {
            b.copy(src, ring.outbox(b, 1).cut(chunk, 1));
            b.signal(base + step, ring.next);
        }
        b.copy(src, output.cut(chunk, 1));
    }
}

fn reduce_scatter(b: &mut Builder<'_>) {
    let ring = Ring::new(b, b.ranks);
    // Block x starts at rank x + 1 and is complete at rank x.
    let first = ring.before(1);
    b.copy(b.input(first), ring.outbox(b, first));
    b.signal(0, ring.next);
    for step in 1..b.ranks {
        let block = ring.before(step + 1);
        b.wait(ring.previous, step - 1);
        let srcs = vec![ring.inbox(b, block), b.input(block)];
        if step == b.ranks - 1 {
            b.combine(srcs, b.output(0), true);
        } else {
            b.combine(srcs, ring.outbox(b, block), false);
            b.signal(step, ring.next);
        }
    }
}

fn all_gather(b: &mut Builder<'_>) {
    let ring = Ring::new(b, b.ranks);
    b.copy(b.input(0), ring.outbox(b, b.rank));
    b.signal(0, ring.next);
    b.copy(b.input(0), b.output(b.rank));
    for step in 1..b.ranks {
        let block = ring.before(step);
        b.wait(ring.previous, step - 1);
        if step < b.ranks - 1 {
            b.copy(ring.inbox(b, block), ring.outbox(b, block));
            b.signal(step, ring.next);
        }
        b.copy(ring.inbox(b, block), b.output(block));
    }
}

/// A chain from the root; pages in flight are its pipeline.
fn broadcast(b: &mut Builder<'_>, root: u32) {
    let ring = Ring::new(b, 1);
    let src = if b.rank == root {
        b.input(0)
    } else {
        b.wait(ring.previous, 0);
        ring.inbox(b, 0)
    };
    if ring.next != root {
        b.copy(src, ring.outbox(b, 0));
        b.signal(0, ring.next);
    }
    b.copy(src, b.output(0));
}

/// A chain to the root, from the rank after it.
fn reduce(b: &mut Builder<'_>, root: u32) {
    let ring = Ring::new(b, 1);
    let dst = if b.rank == root { b.output(0) } else { ring.outbox(b, 0) };
    if ring.previous == root {
        b.copy(b.input(0), dst);
    } else {
        b.wait(ring.previous, 0);
        b.combine(vec![ring.inbox(b, 0), b.input(0)], dst, b.rank == root);
    }
    if b.rank != root {
        b.signal(0, ring.next);
    }
}
