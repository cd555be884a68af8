//! Operations that need another node: what is fetched, added and stored, piece by piece.

use stepccl_engine::{Address, EngineError, Scale};
use stepccl_plan::{DType, ReduceOp};

use crate::scratch::SLAB_BYTES;

/// Where one side of an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Memory that the host engine has.
    Local(Address),
    /// Staging of the peer with that index.
    Remote { peer: usize, offset: u64 },
}

/// How the sources become one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum {
    pub(crate) dtype: DType,
    pub(crate) op: ReduceOp,
    pub(crate) divisor: u32,
    pub(crate) scale: Option<Scale>,
}

/// What a job does once its transfers have ended.
#[derive(Debug)]
pub(crate) enum Work {
    /// The transfer was all.
    Transfer,
    /// Pieces through scratch memory.
    Pieces(Pieces),
}

/// An operation that goes through scratch memory.
#[derive(Debug)]
pub(crate) struct Pieces {
    pub(crate) srcs: Vec<Side>,
    pub(crate) dst: Side,
    /// None for a copy, which has one source.
    pub(crate) sum: Option<Sum>,
    pub(crate) slab: usize,
    /// Bytes of the operation.
    pub(crate) total: u64,
    /// Bytes that are done.
    pub(crate) at: u64,
    /// Most bytes of a piece.
    pub(crate) piece: u64,
    pub(crate) stage: Stage,
}

/// What the present piece waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its remote sources; those before `next` were asked for.
    Fetch { next: usize },
    /// The peer whose staging it goes to.
    Store { asked: bool },
}

/// One operation under way.
#[derive(Debug)]
pub(crate) struct Job {
    /// Bytes of the operation.
    pub(crate) bytes: u64,
    /// Addresses whose regions are pinned.
    pub(crate) pinned: Vec<Address>,
    /// Transfers that have not ended.
    pub(crate) outstanding: usize,
    pub(crate) error: Option<EngineError>,
    pub(crate) work: Work,
}

impl Pieces {
    /// Bytes of the present piece.
    pub(crate) fn now(&self) -> u64 {
        self.piece.min(self.total - self.at)
    }

    /// Place in the slab of remote source number `index`.
    pub(crate) fn slot(&self, index: usize) -> u64 {
        let before = self.srcs[..index].iter().filter(|src| src.is_remote()).count();
        before as u64 * self.piece
    }

    /// Place in the slab of a result that goes to a peer: that of a copy is its only source's.
    pub(crate) fn result_slot(&self) -> u64 {
        if self.sum.is_none() { 0 } else { self.slot(self.srcs.len()) }
    }
}

impl Side {
    pub(crate) const fn is_remote(&self) -> bool {
        matches!(self, Self::Remote { .. })
    }
}

/// Bytes of a piece, so that `remote` pieces fit a slab: whole cache lines, and so whole elements.
pub(crate) const fn piece_bytes(remote: usize) -> u64 {
    (SLAB_BYTES / remote / 64 * 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_fit_the_slab_however_many_there_are() {
        for remote in [1, 2, 3, 17, 4097] {
            let piece = piece_bytes(remote);
            assert!(piece >= 64 && piece * remote as u64 <= SLAB_BYTES as u64);
        }
    }

    #[test]
    fn remote_sources_have_a_slot_each_and_the_result_the_next() {
        let remote = |peer| Side::Remote { peer, offset: 0 };
        let local = Side::Local(Address::from_raw(1 << 40));
        let pieces = Pieces {
            srcs: vec![remote(1), local, remote(2)],
            dst: remote(0),
            sum: Some(Sum { dtype: DType::F32, op: ReduceOp::Sum, divisor: 1, scale: None }),
            slab: 0,
            total: 300,
            at: 256,
            piece: 128,
            stage: Stage::Fetch { next: 0 },
        };
        assert_eq!((pieces.slot(0), pieces.slot(2), pieces.result_slot()), (0, 128, 256));
        assert_eq!(pieces.now(), 44);
        assert_eq!(Pieces { sum: None, ..pieces }.result_slot(), 0);
    }
}
