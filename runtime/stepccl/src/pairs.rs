//! Posts of messages between pairs of ranks: which is the next, and when a place is free again.
//!
//! A sender puts up one post for each message on its board for the receiver. The receiver tells now
//! and then how many it has read, so that a place may be written again.

use stepccl_engine::{Board, BoardShape, Engine, EngineError};

use crate::geometry::Geometry;
use crate::rounds::{Await, Sign};

/// Posts of all pairs of one rank.
#[derive(Debug)]
pub(crate) struct Pairs {
    shape: Option<BoardShape>,
    /// Messages posted for each rank.
    posted: Box<[u64]>,
    /// Messages that each rank is known to have read of them.
    known: Box<[u64]>,
    /// Messages read of each rank.
    read: Box<[u64]>,
    own: u32,
}

impl Pairs {
    pub fn new(rank: u32, ranks: u32, engine: &dyn Engine) -> Self {
        let none = || vec![0; ranks as usize].into_boxed_slice();
        let shape = engine.board(Board::Pair((rank + 1) % ranks.max(1))).filter(|_| ranks > 1);
        Self { shape, posted: none(), known: none(), read: none(), own: rank }
    }

    /// Size of the boards, where the engine has some.
    pub const fn shape(&self) -> Option<BoardShape> {
        self.shape
    }

    /// What must come before the next message for `peer` can be posted, if anything.
    pub fn room(
        &mut self,
        peer: u32,
        geometry: &Geometry,
        engine: &dyn Engine,
    ) -> Result<Option<Await>, EngineError> {
        let at = peer as usize;
        let posts = self.shape.map_or(0, |s| u64::from(s.posts));
        let needed = (self.posted[at] + 1).saturating_sub(posts);
        if self.known[at] < needed {
            let flag = geometry.read_flag(self.own);
            self.known[at] = engine.flag(peer, flag)?;
            if self.known[at] < needed {
                let sign = Sign::Flag { flag, value: needed };
                return Ok(Some(Await { rank: peer, sign, lane: 0 }));
            }
        }
        Ok(None)
    }

    /// Number of the next message for `peer`, which is posted now.
    pub fn post(&mut self, peer: u32) -> u64 {
        let number = self.posted[peer as usize];
        self.posted[peer as usize] += 1;
        number
    }

    /// Number of the next message of `peer`.
    pub fn next(&self, peer: u32) -> u64 {
        self.read[peer as usize]
    }

    /// The next message of `peer` was read; the number to tell it: `at_once`, or now and then.
    pub fn read(&mut self, peer: u32, at_once: bool) -> Option<u64> {
        let read = &mut self.read[peer as usize];
        *read += 1;
        // Often enough that a sender whose receiver keeps up never waits.
        let every = self.shape.map_or(1, |s| (u64::from(s.posts) / 2).max(1));
        (at_once || read.is_multiple_of(every)).then_some(*read)
    }
}
