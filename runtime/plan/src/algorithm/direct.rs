//! One exchange: every rank gets what it needs from every rank.
//!
//! Reductions run in order of rank, so every rank gets the same bits. Data for ranks of other
//! nodes is pushed, so where there are several nodes each source has an area of its own.

use super::Builder;
use crate::{Collective, Program, Span};

pub(super) fn program(collective: Collective, mut b: Builder<'_>) -> Program {
    let ranks = b.ranks;
    // One area serves all where every rank pulls; a pushed area can hold one source only.
    let sources = if b.spread() { ranks } else { 1 };
    let alone = ranks == 1;
    match collective {
        Collective::Barrier => barrier(&mut b),
        _ if alone => b.copy(b.input(0), b.output(0)),
        Collective::AllReduce => all_reduce(&mut b),
        Collective::Broadcast { root } => broadcast(&mut b, root),
        Collective::Reduce { root } => to_root(&mut b, root, true),
        Collective::Gather { root } => to_root(&mut b, root, false),
        Collective::AllGather => all_gather(&mut b),
        Collective::ReduceScatter => exchange(&mut b, true),
        Collective::AllToAll => exchange(&mut b, false),
        Collective::Scatter { root } => scatter(&mut b, root),
    }
    let areas = match collective {
        Collective::Barrier => 0,
        _ if alone => 0,
        Collective::Broadcast { .. } => 1,
        Collective::AllReduce
        | Collective::Reduce { .. }
        | Collective::Gather { .. }
        | Collective::AllGather => sources,
        Collective::ReduceScatter | Collective::AllToAll | Collective::Scatter { .. } => ranks,
    };
    b.finish(areas, u32::from(!alone))
}

/// Area for data of `source` that one or many ranks read.
fn area_of(b: &Builder<'_>, source: u32) -> u32 {
    if b.spread() { source } else { 0 }
}

/// Where `source`'s data for this rank is.
fn incoming(b: &Builder<'_>, source: u32) -> Span {
    let area = area_of(b, source);
    b.mailbox(source, b.rank, area, area)
}

/// Give the input to every other rank.
fn publish(b: &mut Builder<'_>, area: u32) {
    if b.neighbours().next().is_some() {
        b.copy(b.input(0), b.area(b.rank, area));
    }
    for peer in b.strangers() {
        b.copy(b.input(0), b.area(peer, area));
    }
    b.signal_all(0);
}

fn wait_for_all(b: &mut Builder<'_>) {
    for peer in b.others() {
        b.wait(peer, 0);
    }
}

fn all_reduce(b: &mut Builder<'_>) {
    publish(b, area_of(b, b.rank));
    wait_for_all(b);
    reduce_incoming(b);
}

/// Combine own input and what came from all others, in order of rank.
fn reduce_incoming(b: &mut Builder<'_>) {
    let srcs =
        (0..b.ranks).map(|s| if s == b.rank { b.input(0) } else { incoming(b, s) }).collect();
    b.combine(srcs, b.output(0), true);
}

fn broadcast(b: &mut Builder<'_>, root: u32) {
    if b.rank == root {
        publish(b, 0);
        b.copy(b.input(0), b.output(0));
    } else {
        b.wait(root, 0);
        b.copy(b.mailbox(root, b.rank, 0, 0), b.output(0));
    }
}

fn to_root(b: &mut Builder<'_>, root: u32, reduces: bool) {
    if b.rank != root {
        let area = area_of(b, b.rank);
        b.copy(b.input(0), b.mailbox(b.rank, root, area, area));
        b.signal(0, root);
    } else if reduces {
        wait_for_all(b);
        reduce_incoming(b);
    } else {
        collect(b);
    }
}

/// Copy own input and what each other rank published to the output.
fn collect(b: &mut Builder<'_>) {
    b.copy(b.input(0), b.output(b.rank));
    for peer in b.others() {
        b.wait(peer, 0);
        b.copy(incoming(b, peer), b.output(peer));
    }
}

fn all_gather(b: &mut Builder<'_>) {
    publish(b, area_of(b, b.rank));
    collect(b);
}

/// Every rank gives every other its block. A rank's areas hold outgoing blocks for neighbours and
/// incoming ones of strangers; each peer is one of the two, so its number serves both.
fn exchange(b: &mut Builder<'_>, reduces: bool) {
    for peer in b.others() {
        b.copy(b.input(peer), b.mailbox(b.rank, peer, peer, b.rank));
    }
    b.signal_all(0);
    if reduces {
        wait_for_all(b);
        let source = |s| {
            if s == b.rank { b.input(s) } else { b.mailbox(s, b.rank, b.rank, s) }
        };
        b.combine((0..b.ranks).map(source).collect(), b.output(0), true);
    } else {
        b.copy(b.input(b.rank), b.output(b.rank));
        for peer in b.others() {
            b.wait(peer, 0);
            b.copy(b.mailbox(peer, b.rank, b.rank, peer), b.output(peer));
        }
    }
}

fn scatter(b: &mut Builder<'_>, root: u32) {
    if b.rank == root {
        for peer in b.others() {
            b.copy(b.input(peer), b.mailbox(root, peer, peer, 0));
        }
        b.signal_all(0);
        b.copy(b.input(root), b.output(0));
    } else {
        b.wait(root, 0);
        b.copy(b.mailbox(root, b.rank, b.rank, 0), b.output(0));
    }
}

fn barrier(b: &mut Builder<'_>) {
    if b.ranks > 1 {
        b.signal_all(0);
        wait_for_all(b);
    }
}
