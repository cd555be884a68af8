//! Two exchanges: each rank finishes its share of the page, then all collect the shares.
//!
//! A page has as many parts as there are ranks; part r is the share of rank r. Where there are
//! several nodes, data of rank s lies in area s of whoever holds it, otherwise in area 0. A rank
//! never needs its own share from its own area, so the finished share goes there.

use super::Builder;
use crate::{Collective, Program, Span};

pub(super) fn program(collective: Collective, mut b: Builder<'_>) -> Program {
    b.parts = b.ranks;
    match collective {
        Collective::Broadcast { root } => broadcast(&mut b, root),
        Collective::Reduce { root } => reduce(&mut b, root),
        _ => all_reduce(&mut b),
    }
    let areas = if b.spread() { b.ranks } else { 1 };
    b.finish(areas, 2)
}

/// Share of `share` in the data that `source` has for `reader`.
fn share_of(b: &Builder<'_>, source: u32, reader: u32, share: u32) -> Span {
    let area = if b.spread() { source } else { 0 };
    b.mailbox(source, reader, area, area).cut(share, 1)
}

/// Give every other rank its share of this rank's input.
fn give_shares(b: &mut Builder<'_>) {
    let own = b.area(b.rank, if b.spread() { b.rank } else { 0 });
    let mut first = 0;
    while first < b.ranks {
        // One copy for a run of neighbours.
        let run =
            (first..b.ranks).take_while(|peer| *peer != b.rank && b.local(*peer)).count() as u32;
        b.copy(b.input(0).cut(first, run), own.cut(first, run));
        first += run + 1;
    }
    for peer in b.strangers() {
        b.copy(b.input(0).cut(peer, 1), share_of(b, b.rank, peer, peer));
    }
    b.signal_all(0);
}

/// Combine this rank's share of all inputs, in order of rank.
fn finish_share(b: &mut Builder<'_>, dst: Span) {
    for peer in b.others() {
        b.wait(peer, 0);
    }
    let me = b.rank;
    let source = |s| if s == me { b.input(0).cut(me, 1) } else { share_of(b, s, me, me) };
    b.combine((0..b.ranks).map(source).collect(), dst, true);
}

/// Collect the finished shares of the ranks for which `from` holds.
fn collect_shares(b: &mut Builder<'_>, from: impl Fn(u32) -> bool) {
    for peer in b.others().filter(|peer| from(*peer)) {
        b.wait(peer, 1);
        b.copy(share_of(b, peer, b.rank, peer), b.output(0).cut(peer, 1));
    }
}

fn all_reduce(b: &mut Builder<'_>) {
    let me = b.rank;
    let output = b.output(0).cut(me, 1);
    let staged = b.neighbours().next().map(|peer| share_of(b, me, peer, me));
    let share = staged.unwrap_or(output);
    give_shares(b);
    finish_share(b, share);
    for peer in b.strangers() {
        b.copy(share, share_of(b, me, peer, me));
    }
    b.signal_all(1);
    if staged.is_some() {
        b.copy(share, output);
    }
    collect_shares(b, |_| true);
}

fn reduce(b: &mut Builder<'_>, root: u32) {
    let me = b.rank;
    give_shares(b);
    if me == root {
        finish_share(b, b.output(0).cut(me, 1));
        collect_shares(b, |_| true);
    } else {
        finish_share(b, share_of(b, me, root, me));
        b.signal(1, root);
    }
}

fn broadcast(b: &mut Builder<'_>, root: u32) {
    let me = b.rank;
    if me == root {
        if let Some(peer) = b.neighbours().next() {
            let own = share_of(b, me, peer, me);
            b.copy(b.input(0).cut(me, 1), own);
        }
        for peer in b.strangers() {
            b.copy(b.input(0).cut(me, 1), share_of(b, me, peer, me));
        }
        give_shares(b);
        b.copy(b.input(0), b.output(0));
        return;
    }
    let output = b.output(0);
    let given = share_of(b, root, me, me);
    b.wait(root, 0);
    let staged = b.neighbours().find(|peer| *peer != root).map(|peer| share_of(b, me, peer, me));
    if let Some(staged) = staged {
        b.copy(given, staged);
    }
    for peer in b.strangers().filter(|peer| *peer != root) {
        b.copy(given, share_of(b, me, peer, me));
    }
    if b.ranks > 2 {
        b.signal_all(1);
    }
    b.copy(given, output.cut(me, 1));
    b.copy(share_of(b, root, me, root), output.cut(root, 1));
    collect_shares(b, |peer| peer != root);
}
