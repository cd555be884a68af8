//! Short messages: to ranks of this node by the host engine, to others with their data.

use stepccl_engine::{Board, BoardShape, Combination, Engine, EngineError, Look, Part, PartMut};
use stepccl_engine_host::{HostEngine, kernel};

use super::{TcpEngine, Way};
use crate::shelf::Shelf;

impl TcpEngine {
    pub(super) fn board_shape(&self, board: Board) -> Option<BoardShape> {
        match board {
            Board::Collective => self.host.board(board),
            // All boards of pairs are of one shape, and the host engine has one for each of its.
            Board::Pair(rank) => {
                self.ways.get(rank as usize).and_then(|_| self.host.board(Board::Pair(0)))
            }
        }
    }

    fn no_post(&self, board: Board, number: u64, bytes: usize) -> EngineError {
        let limit = self.board_shape(board).map_or(0, |shape| shape.bytes);
        EngineError::NoPost { board, number, bytes, limit }
    }

    /// # Safety
    ///
    /// As [`Engine::post`].
    pub(super) unsafe fn put_post(
        &mut self,
        board: Board,
        number: u64,
        words: [u64; 2],
        parts: &[Part],
    ) -> Result<(), EngineError> {
        let bytes: usize = parts.iter().map(|part| part.bytes).sum();
        let limit = self.board_shape(board).map(|shape| shape.bytes);
        if limit.is_none_or(|limit| bytes > limit) {
            return Err(self.no_post(board, number, bytes));
        }
        let (local, first, last) = match board {
            Board::Collective => (Some(board), 0, self.shared.peers.len()),
            Board::Pair(rank) => match self.ways.get(rank as usize) {
                Some(Way::Host(index)) => (Some(Board::Pair(*index)), 0, 0),
                Some(Way::Peer(peer)) => (None, *peer, peer + 1),
                None => return Err(self.no_post(board, number, bytes)),
            },
        };
        match local {
            // SAFETY:
            // - The caller upholds the contract, which is the same.
            Some(local) => unsafe { self.host.post(local, number, words, parts) }?,
            None => {
                self.meter.posts.add(1);
                self.meter.posted_bytes.add(bytes as u64);
            }
        }
        if first == last {
            return Ok(());
        }
        let mut payload = Vec::with_capacity(16 + bytes);
        payload.extend_from_slice(&words[0].to_le_bytes());
        payload.extend_from_slice(&words[1].to_le_bytes());
        for part in parts.iter().filter(|part| part.bytes > 0) {
            // SAFETY:
            // - The caller promised that the part is valid for reads during this call.
            payload.extend_from_slice(unsafe { std::slice::from_raw_parts(part.base, part.bytes) });
        }
        let pair = board != Board::Collective;
        for peer in &self.shared.peers[first..last] {
            self.shared.send(peer, |outbox| outbox.post(pair, number, &payload));
        }
        Ok(())
    }

    /// Board of a peer that this rank reads, with `end` bytes of data.
    fn shelf(&self, peer: usize, board: Board, end: usize) -> Option<&Shelf> {
        let peer = &self.shared.peers[peer];
        let shelf = match board {
            Board::Collective => &peer.collective,
            Board::Pair(rank) if rank == self.shared.rank => &peer.pair,
            // What a peer posts for others does not come here.
            Board::Pair(_) => return None,
        };
        (end <= shelf.limit()).then_some(shelf)
    }

    pub(super) fn look_at(
        &self,
        from: u32,
        board: Board,
        number: u64,
    ) -> Result<Look, EngineError> {
        let none = || self.no_post(board, number, 0);
        match self.ways.get(from as usize) {
            Some(Way::Host(index)) => {
                let local = self.local_board(board).ok_or_else(none)?;
                self.host.look(*index, local, number)
            }
            Some(Way::Peer(peer)) => {
                self.shelf(*peer, board, 0).and_then(|shelf| shelf.look(number)).ok_or_else(none)
            }
            None => Err(none()),
        }
    }

    /// The board as the host engine calls it.
    fn local_board(&self, board: Board) -> Option<Board> {
        match board {
            Board::Collective => Some(board),
            Board::Pair(rank) => match self.ways.get(rank as usize)? {
                Way::Host(index) => Some(Board::Pair(*index)),
                Way::Peer(_) => None,
            },
        }
    }

    /// # Safety
    ///
    /// As [`Engine::fetch`].
    pub(super) unsafe fn fetch_post(
        &mut self,
        from: u32,
        board: Board,
        number: u64,
        offset: usize,
        dst: PartMut,
    ) -> Result<(), EngineError> {
        let end = offset.saturating_add(dst.bytes);
        let none = self.no_post(board, number, end);
        match self.ways.get(from as usize) {
            Some(Way::Host(index)) => {
                let local = self.local_board(board).ok_or(none)?;
                // SAFETY:
                // - The caller upholds the contract, which is the same.
                unsafe { self.host.fetch(*index, local, number, offset, dst) }
            }
            Some(Way::Peer(peer)) => {
                let shelf = self.shelf(*peer, board, end);
                let part = shelf.and_then(|shelf| shelf.part(number, offset, dst.bytes));
                let src = part.ok_or(none)?.base().cast_const();
                // SAFETY:
                // - The part has so many bytes; the caller vouches for `dst`, which is apart from
                //   the shelf, since that is not handed out.
                unsafe { kernel::copy(dst.base, src, dst.bytes) };
                Ok(())
            }
            None => Err(none),
        }
    }

    /// # Safety
    ///
    /// As [`Engine::combine`].
    pub(super) unsafe fn combine_posts(
        &mut self,
        number: u64,
        offset: usize,
        own: *const u8,
        dst: *mut u8,
        how: Combination,
    ) -> Result<(), EngineError> {
        let Combination { count, dtype, op, divisor } = how;
        HostEngine::check_combination(dtype, op, false)?;
        let bytes = count.saturating_mul(dtype.size());
        let end = offset.saturating_add(bytes);
        let mut from = Vec::with_capacity(self.ways.len());
        for (way, rank) in self.ways.iter().zip(0..) {
            from.push(match way {
                _ if rank == self.shared.rank => own,
                Way::Host(index) => self.host.posted(*index, number, offset, bytes)?,
                Way::Peer(peer) => self
                    .shelf(*peer, Board::Collective, end)
                    .and_then(|shelf| shelf.part(number, offset, bytes))
                    .ok_or_else(|| self.no_post(Board::Collective, number, end))?
                    .base()
                    .cast_const(),
            });
        }
        // SAFETY:
        // - Every source has so many bytes in a post or a shelf, and every pattern of bits is an
        //   element; the caller vouches for `own` and `dst`, which are in neither.
        unsafe { kernel::reduce(dst, &from, count, dtype, op, divisor) };
        Ok(())
    }
}
