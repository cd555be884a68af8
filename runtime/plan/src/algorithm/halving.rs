//! Partners at distances that halve (reductions) or double (gathering).
//!
//! Any number of ranks: the first ranks are folded in pairs until a power of two is left. The odd
//! rank of a pair gives its data to the even one first and gets its result from it last; the
//! others are *players*, numbered in order of rank.
//!
//! While halving, nothing is accumulated: what partners sent stays where it is until the round is
//! over, so each exchange is one reduction over the input and all that was received so far.

use std::ops::Range;

use super::Builder;
use crate::{Collective, Program, Span};

pub(super) fn program(collective: Collective, mut b: Builder<'_>) -> Program {
    let map = Map::new(collective, &b);
    if !map.blocks {
        b.parts = map.fold.players;
    }
    match map.fold.player(b.rank) {
        None => folded(collective, &map, &mut b),
        Some(player) => match collective {
            Collective::AllGather => {
                let held = gathered(&map, player, &b);
                spread(&map, player, &held, false, &mut b);
            }
            Collective::ReduceScatter => {
                let held = halve(&map, player, &mut b);
                finish_blocks(&map, player, &held, &mut b);
            }
            _ => {
                let held = halve(&map, player, &mut b);
                spread(&map, player, &held, true, &mut b);
            }
        },
    }
    b.finish(map.areas, map.flags())
}

/// Which ranks are folded away.
#[derive(Clone, Copy)]
struct Fold {
    players: u32,
    pairs: u32,
    levels: u32,
}

impl Fold {
    fn new(ranks: u32) -> Self {
        let levels = ranks.ilog2();
        Self { players: 1 << levels, pairs: ranks - (1 << levels), levels }
    }

    fn player(self, rank: u32) -> Option<u32> {
        if rank >= 2 * self.pairs {
            Some(rank - self.pairs)
        } else if rank.is_multiple_of(2) {
            Some(rank / 2)
        } else {
            None
        }
    }

    /// Rank of a player; the number of ranks for the number of players.
    fn rank(self, player: u32) -> u32 {
        if player < self.pairs { 2 * player } else { player + self.pairs }
    }

    /// Rank that is folded into a player.
    fn folded(self, player: u32) -> Option<u32> {
        (player < self.pairs).then(|| 2 * player + 1)
    }
}

/// Where things are: areas and flags.
///
/// A *unit* is what a rank answers for: its block of the collective, which has an area of its
/// own, or a player's part of the only block.
struct Map {
    fold: Fold,
    blocks: bool,
    /// Areas from which partners pull while halving, and while doubling.
    halving_out: u32,
    doubling_out: u32,
    /// Areas to which others push: across a fold, at each level of halving, while doubling.
    fold_in: u32,
    halving_in: Vec<u32>,
    doubling_in: u32,
    areas: u32,
}

impl Map {
    fn new(collective: Collective, b: &Builder<'_>) -> Self {
        let fold = Fold::new(b.ranks);
        let blocks = collective != Collective::AllReduce;
        let halves = u32::from(collective != Collective::AllGather);
        let doubles = u32::from(collective != Collective::ReduceScatter);
        let pushes = u32::from(b.spread());
        let folds = u32::from(fold.pairs > 0);
        let width = if blocks { b.ranks } else { 1 };
        let mut areas = 0;
        let mut take = |count: u32| {
            areas += count;
            areas - count
        };
        let halving_out = take(width * halves);
        let doubling_out = take(width * doubles);
        let fold_in = take(width * pushes * folds);
        let doubling_in = take(width * pushes * doubles);
        // Of each level at most so many units stay; they need areas of their own.
        let kept = |level: u32| {
            if blocks { (fold.players >> (level + 1)) * (1 + folds) } else { 1 }
        };
        let halving_in = (0..fold.levels).map(|k| take(kept(k) * pushes * halves)).collect();
        Self { fold, blocks, halving_out, doubling_out, fold_in, halving_in, doubling_in, areas }
    }

    fn flag_halving(&self, level: u32) -> u32 {
        1 + level
    }

    fn flag_doubling(&self, step: u32) -> u32 {
        1 + self.fold.levels + step
    }

    fn flag_unfold(&self) -> u32 {
        1 + 2 * self.fold.levels
    }

    fn flags(&self) -> u32 {
        2 + 2 * self.fold.levels
    }

    /// Units of a range of players.
    fn units(&self, players: Range<u32>) -> Range<u32> {
        if self.blocks {
            self.fold.rank(players.start)..self.fold.rank(players.end)
        } else {
            players
        }
    }

    /// Memory whose first block or area is `span` and holds unit `base`.
    fn cells(&self, span: Span, base: u32) -> Cells {
        Cells { span, base, blocks: self.blocks }
    }

    /// Mailbox across a fold, in either direction.
    fn fold_box(&self, from: u32, to: u32, pulled: u32, b: &Builder<'_>) -> Cells {
        self.cells(b.mailbox(from, to, pulled, self.fold_in), 0)
    }
}

/// Memory with a place for each of some units.
#[derive(Clone, Copy)]
struct Cells {
    span: Span,
    base: u32,
    blocks: bool,
}

impl Cells {
    /// How many spans `units` are.
    fn spans(self, units: &Range<u32>) -> u32 {
        if self.blocks { units.end - units.start } else { 1 }
    }

    /// The span of that index.
    fn span(self, units: &Range<u32>, index: u32) -> Span {
        if self.blocks {
            Span { block: self.span.block + units.start + index - self.base, ..self.span }
        } else {
            self.span.cut(units.start, units.end - units.start)
        }
    }
}

/// Combine `units` of all `sources`.
fn combine(sources: &[Cells], dst: Cells, units: &Range<u32>, last: bool, b: &mut Builder<'_>) {
    for index in 0..dst.spans(units) {
        let srcs = sources.iter().map(|source| source.span(units, index)).collect();
        b.combine(srcs, dst.span(units, index), last);
    }
}

fn copy(src: Cells, dst: Cells, units: &Range<u32>, b: &mut Builder<'_>) {
    for index in 0..dst.spans(units) {
        b.copy(src.span(units, index), dst.span(units, index));
    }
}

/// What a folded rank does: give, and get its result.
fn folded(collective: Collective, map: &Map, b: &mut Builder<'_>) {
    let (me, partner) = (b.rank, b.rank - 1);
    let all = map.units(0..map.fold.players);
    match collective {
        Collective::AllGather => {
            let give = map.fold_box(me, partner, map.doubling_out, b);
            copy(map.cells(b.input(0), me), give, &(me..me + 1), b);
            b.signal(0, partner);
            let output = map.cells(b.output(0), 0);
            copy(map.cells(b.input(0), me), output, &(me..me + 1), b);
            b.wait(partner, map.flag_unfold());
            let result = map.fold_box(partner, me, map.doubling_out, b);
            copy(result, output, &(0..me), b);
            copy(result, output, &(me + 1..b.ranks), b);
        }
        Collective::ReduceScatter => {
            let give = map.fold_box(me, partner, map.halving_out, b);
            copy(map.cells(b.input(0), 0), give, &all, b);
            b.signal(0, partner);
            b.wait(partner, map.flag_unfold());
            let result = map.fold_box(partner, me, map.halving_out, b);
            copy(result, map.cells(b.output(0), me), &(me..me + 1), b);
        }
        _ => {
            let give = map.fold_box(me, partner, map.halving_out, b);
            copy(map.cells(b.input(0), 0), give, &all, b);
            b.signal(0, partner);
            b.wait(partner, map.flag_unfold());
            let result = map.fold_box(partner, me, map.doubling_out, b);
            copy(result, map.cells(b.output(0), 0), &all, b);
        }
    }
}

/// What a player has before gathering: its own block, and where its folded rank put that one's.
fn gathered(map: &Map, player: u32, b: &Builder<'_>) -> Vec<Cells> {
    let own = map.cells(b.input(0), b.rank);
    match map.fold.folded(player) {
        Some(folded) => vec![own, map.fold_box(folded, b.rank, map.doubling_out, b)],
        None => vec![own],
    }
}

/// Exchange halves until only the player's own units are left; returns all that holds a
/// contribution to them.
fn halve(map: &Map, player: u32, b: &mut Builder<'_>) -> Vec<Cells> {
    let me = b.rank;
    let mut held = vec![map.cells(b.input(0), 0)];
    if let Some(folded) = map.fold.folded(player) {
        b.wait(folded, 0);
        held.push(map.fold_box(folded, me, map.halving_out, b));
    }
    for level in 0..map.fold.levels {
        let distance = map.fold.players >> (level + 1);
        let partner = player ^ distance;
        let first = |player: u32| player & !(distance - 1);
        let kept = map.units(first(player)..first(player) + distance);
        let given = map.units(first(partner)..first(partner) + distance);
        let peer = map.fold.rank(partner);
        let mailbox = |from: u32, to: u32, kept_there: &Range<u32>, b: &Builder<'_>| {
            let pulled = map.cells(b.area(from, map.halving_out), 0);
            let base = if map.blocks { kept_there.start } else { 0 };
            let pushed = map.cells(b.area(to, map.halving_in[level as usize]), base);
            if b.local(peer) { pulled } else { pushed }
        };
        let outbox = mailbox(me, peer, &given, b);
        combine(&held, outbox, &given, false, b);
        b.signal(map.flag_halving(level), peer);
        b.wait(peer, map.flag_halving(level));
        held.push(mailbox(peer, me, &kept, b));
    }
    held
}

/// Reduce-scatter's end: the player's own block, and before it that of its folded rank.
fn finish_blocks(map: &Map, player: u32, held: &[Cells], b: &mut Builder<'_>) {
    let me = b.rank;
    if let Some(folded) = map.fold.folded(player) {
        let result = map.fold_box(me, folded, map.halving_out, b);
        combine(held, result, &(folded..folded + 1), true, b);
        b.signal(map.flag_unfold(), folded);
    }
    combine(held, map.cells(b.output(0), me), &(me..me + 1), true, b);
}

/// Gather the units of all players by doubling, then give all to the folded rank.
///
/// `sources` are combined into the player's own units where `reduces`; otherwise each holds one
/// of its units. As long as a later partner pulls, units go to the own outbox first and to the
/// output after the next signal.
fn spread(map: &Map, player: u32, sources: &[Cells], reduces: bool, b: &mut Builder<'_>) {
    let me = b.rank;
    let partner = |step: u32| map.fold.rank(player ^ (1 << step));
    let folded = map.fold.folded(player);
    let levels = map.fold.levels;
    let pulled_after = |step: u32, b: &Builder<'_>| {
        (step..levels).any(|s| b.local(partner(s))) || folded.is_some_and(|f| b.local(f))
    };
    let outbox = map.cells(b.area(me, map.doubling_out), 0);
    let output = map.cells(b.output(0), 0);

    let mut have = map.units(player..player + 1);
    let mut staged = pulled_after(0, b);
    let land = if staged { outbox } else { output };
    if reduces {
        combine(sources, land, &have, true, b);
    } else {
        for (source, unit) in sources.iter().zip(have.clone()) {
            if unit != me {
                b.wait(unit, 0);
            }
            copy(*source, land, &(unit..unit + 1), b);
        }
    }
    let mut pending = staged.then(|| have.clone());
    for step in 0..levels {
        let peer = partner(step);
        if !b.local(peer) {
            let pushed = map.cells(b.area(peer, map.doubling_in), 0);
            copy(if staged { outbox } else { output }, pushed, &have, b);
        }
        b.signal(map.flag_doubling(step), peer);
        if let Some(units) = pending.take() {
            copy(outbox, output, &units, b);
        }
        let first = (player ^ (1 << step)) & !((1 << step) - 1);
        let theirs = map.units(first..first + (1 << step));
        let inbox = map.cells(b.mailbox(peer, me, map.doubling_out, map.doubling_in), 0);
        b.wait(peer, map.flag_doubling(step));
        staged = pulled_after(step + 1, b);
        copy(inbox, if staged { outbox } else { output }, &theirs, b);
        pending = staged.then(|| theirs.clone());
        have = have.start.min(theirs.start)..have.end.max(theirs.end);
    }
    if let Some(folded) = folded {
        if !b.local(folded) {
            let result = map.fold_box(me, folded, map.doubling_out, b);
            if map.blocks {
                copy(output, result, &(0..folded), b);
                copy(output, result, &(folded + 1..b.ranks), b);
            } else {
                copy(output, result, &have, b);
            }
        }
        b.signal(map.flag_unfold(), folded);
    }
    if let Some(units) = pending {
        copy(outbox, output, &units, b);
    }
}
