//! Who moves which bytes of a long collective that copies each byte once.
//!
//! Where bytes go between a root and the others, both ends of a block may move a part of it, so that
//! none of them is idle: with `n` ranks a root that has no block of its own to copy moves the last
//! `1/n` of each block of the others, and they move the rest. All other collectives keep every rank
//! busy with reading.

use stepccl_plan::Collective;

/// A part of a block that the other rank does not move is a multiple of so many bytes, but the last.
const PAGE_BYTES: usize = 4096;

/// How a rank moves a part of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// From the peer's memory to its own output.
    Read,
    /// From its own input to the peer's memory.
    Write,
}

/// A part of a block that one rank moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The other rank; this one for its own block.
    pub peer: u32,
    pub side: Side,
    /// Block of the buffer that the peer tells of.
    pub peer_block: u32,
    /// Block of the own output or input.
    pub own_block: u32,
    /// First byte of the block, and the byte behind the last.
    pub from: usize,
    pub to: usize,
}

/// Which buffer of a rank the others touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Input,
    Output,
}

/// A collective whose blocks have `bytes` bytes, on `ranks` ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moves {
    pub collective: Collective,
    pub ranks: u32,
    pub bytes: usize,
    /// The rank that every block goes through, where both ends may move.
    pub root: Option<u32>,
}

impl Moves {
    /// Both ends of a block move from `both_from` bytes on.
    pub fn new(collective: Collective, ranks: u32, bytes: usize, both_from: usize) -> Self {
        Self { collective, ranks, bytes, root: collective.root().filter(|_| bytes >= both_from) }
    }

    /// Which buffer `rank` tells the others of.
    pub fn told(&self, rank: u32) -> Told {
        match (self.root, self.collective) {
            (Some(root), Collective::Gather { .. }) if rank == root => Told::Output,
            (Some(root), Collective::Broadcast { .. } | Collective::Scatter { .. })
                if rank != root =>
            {
                Told::Output
            }
            _ => Told::Input,
        }
    }

    /// Blocks of it.
    pub fn told_blocks(&self, rank: u32) -> u32 {
        match self.told(rank) {
            Told::Input => self.collective.input_blocks(rank, self.ranks),
            Told::Output => self.collective.output_blocks(rank, self.ranks),
        }
    }

    /// Whether `peer` moves bytes of the memory of `rank`.
    pub const fn touches(&self, peer: u32, rank: u32) -> bool {
        let reads = self.collective.reads(peer, rank);
        reads || self.root.is_some() && self.collective.reads(rank, peer)
    }

    /// Block of its own output that holds what the root `rank` keeps for itself.
    pub const fn own_output(&self, rank: u32) -> u32 {
        if matches!(self.collective, Collective::Gather { .. }) { rank } else { 0 }
    }

    /// First byte of a block that a root moves, which does so where it has time.
    fn cut(&self, root_moves: bool) -> usize {
        let share = if root_moves { self.bytes / self.ranks.max(1) as usize } else { 0 };
        self.bytes - share / PAGE_BYTES * PAGE_BYTES
    }

    /// What `rank` moves: its own block first, then those of the ranks behind it, so that not all
    /// turn to the same. `root_moves` is what the root told.
    pub fn of(&self, rank: u32, root_moves: bool) -> Vec<Piece> {
        let Self { collective, ranks, bytes, .. } = *self;
        let outputs = collective.output_blocks(rank, ranks);
        let cut = self.cut(root_moves);
        let piece = |side, peer, peer_block, own_block, (from, to)| Piece {
            peer,
            side,
            peer_block,
            own_block,
            from,
            to,
        };
        let own = collective.block_for(rank);
        let read = |peer, own_block, range| piece(Side::Read, peer, own, own_block, range);
        let Some(root) = self.root else {
            // Every rank reads what it gets.
            let source = collective.root().filter(|_| outputs == 1);
            let places =
                (0..outputs).map(|step| if outputs == 1 { 0 } else { (rank + step) % ranks });
            return places.map(|place| read(source.unwrap_or(place), place, (0, bytes))).collect();
        };
        let gathers = matches!(collective, Collective::Gather { .. });
        if rank != root {
            let range = (0, cut);
            return vec![if gathers {
                piece(Side::Write, root, rank, 0, range)
            } else {
                read(root, 0, range)
            }];
        }
        let moved = (0..ranks).map(|step| (rank + step) % ranks).map(|peer| {
            if peer == rank {
                read(rank, self.own_output(rank), (0, bytes))
            } else if gathers {
                read(peer, peer, (cut, bytes))
            } else {
                piece(Side::Write, peer, 0, collective.block_for(peer), (cut, bytes))
            }
        });
        moved.filter(|piece| piece.from < piece.to).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pull::can_pull;

    fn collectives(root: u32) -> impl Iterator<Item = Collective> {
        Collective::ALL.into_iter().filter(|c| can_pull(*c)).map(move |c| c.with_root(root))
    }

    proptest! {
        /// Every byte of every output is moved once, from where it belongs, and who touches
        /// another's memory was told where it is and is waited for.
        #[test]
        fn every_byte_is_moved_once(
            ranks in 1u32..9,
            root in 0u32..9,
            bytes in prop_oneof![1usize..10_000, 100_000usize..200_000],
            both in any::<bool>(),
            root_moves in any::<bool>(),
        ) {
            for collective in collectives(root % ranks) {
                let moves = Moves::new(collective, ranks, bytes, if both { 0 } else { usize::MAX });
                let mut parts: Vec<(u32, u32, u32, u32, usize, usize)> = Vec::new();
                for rank in 0..ranks {
                    for piece in moves.of(rank, root_moves) {
                        let Piece { peer, side, peer_block, own_block, from, to } = piece;
                        prop_assert!(from < to && to <= bytes);
                        if peer != rank {
                            let told = if side == Side::Read { Told::Input } else { Told::Output };
                            prop_assert_eq!(moves.told(peer), told);
                            prop_assert!(peer_block < moves.told_blocks(peer));
                            prop_assert!(moves.touches(rank, peer));
                        }
                        parts.push(match side {
                            Side::Read => (rank, own_block, peer, peer_block, from, to),
                            Side::Write => (peer, peer_block, rank, own_block, from, to),
                        });
                    }
                }
                parts.sort_unstable();
                for reader in 0..ranks {
                    let outputs = collective.output_blocks(reader, ranks);
                    for block in 0..outputs {
                        let writer = collective.root().filter(|_| outputs == 1).unwrap_or(block);
                        let mut end = 0;
                        for part in parts.iter().filter(|p| p.0 == reader && p.1 == block) {
                            prop_assert_eq!((part.2, part.3, part.4), (writer, collective.block_for(reader), end));
                            end = part.5;
                        }
                        prop_assert_eq!(end, bytes, "{} reader {} block {}", collective, reader, block);
                    }
                }
            }
        }
    }

    #[test]
    fn a_root_moves_its_share_of_each_block() {
        let moves = Moves::new(Collective::Broadcast { root: 1 }, 2, 100_000, 1);
        let piece = Piece {
            peer: 1,
            side: Side::Read,
            peer_block: 0,
            own_block: 0,
            from: 0,
            to: 100_000 - 49_152,
        };
        assert_eq!(moves.of(0, true), [piece]);
        assert_eq!(
            moves.of(1, true)[1],
            Piece { peer: 0, side: Side::Write, from: piece.to, to: 100_000, ..piece }
        );
    }
}
