//! Numbers of the posts on the board of collectives: when a place may be written again.
//!
//! Every collective is a post of every rank, or a few, numbered alike on all of them. A rank makes a
//! post only when it needs no earlier one of the others any more, so a place may be written again
//! once every rank has made the post after the one that stands there.

use stepccl_engine::{Board, Engine, EngineError, Look};

use crate::rounds::{Await, Sign};

/// Posts of one communicator, as one rank knows them.
#[derive(Debug)]
pub(crate) struct Posts {
    /// Places of the board; 0 where the engine has none.
    places: u64,
    /// Number of the next post.
    next: u64,
    /// Collectives posted so far.
    collectives: u64,
    /// Which collective the post at each place is of.
    collective_at: Box<[u64]>,
    /// Collectives that each rank is known to have posted; a lower bound.
    seen: Box<[u64]>,
    /// Smallest of `seen`.
    all: u64,
    own: usize,
}

impl Posts {
    pub fn new(rank: u32, ranks: u32, engine: &dyn Engine) -> Self {
        // One rank has nobody to tell.
        let shape = engine.board(Board::Collective).filter(|_| ranks > 1);
        Self {
            places: shape.map_or(0, |s| u64::from(s.posts)),
            next: 0,
            collectives: 0,
            collective_at: vec![0; shape.map_or(0, |s| s.posts as usize)].into(),
            seen: vec![0; ranks as usize].into(),
            all: 0,
            own: rank as usize,
        }
    }

    /// Whether collectives are posted at all.
    pub const fn are_used(&self) -> bool {
        self.places > 0
    }

    /// Whether the next post can be made, by what is known.
    #[inline]
    pub const fn has_room(&self) -> bool {
        // The post after the one that is to be replaced was made by all.
        self.next < self.places || self.all > self.next + 1 - self.places
    }

    /// What must come before the next post can be made, if anything.
    pub fn room(&mut self, engine: &dyn Engine) -> Result<Option<Await>, EngineError> {
        // The post after the one that is to be replaced.
        let Some(after) = (self.next + 1).checked_sub(self.places) else { return Ok(None) };
        if self.all > after {
            return Ok(None);
        }
        // A rank that runs ahead waits until half of the places are free, not for each: every look
        // at a post takes its line from the rank that is to write there again.
        // Never for a post that nobody can make before this rank's next.
        let after = (after + self.places / 2).min(self.next - 1).max(after);
        let mut all = u64::MAX;
        for (rank, seen) in self.seen.iter_mut().enumerate() {
            if rank == self.own {
                continue;
            }
            if *seen <= after {
                let rank = rank as u32;
                if engine.look(rank, Board::Collective, after)? == Look::Absent {
                    return Ok(Some(Await { rank, sign: Sign::Post(after), lane: 0 }));
                }
                *seen = after + 1;
            }
            all = all.min(*seen);
        }
        self.all = all;
        Ok(None)
    }

    /// Places are a power of two, as engines have them.
    #[inline]
    const fn place_of(&self, number: u64) -> usize {
        (number & self.places.saturating_sub(1)) as usize
    }

    /// Number of the first post of a collective.
    #[inline]
    pub fn take(&mut self) -> u64 {
        self.collectives += 1;
        self.take_again()
    }

    /// Number of a further post of the collective that was posted last.
    #[inline]
    pub fn take_again(&mut self) -> u64 {
        let place = self.place_of(self.next);
        if let Some(collective) = self.collective_at.get_mut(place) {
            *collective = self.collectives.saturating_sub(1);
        }
        self.next += 1;
        self.next - 1
    }

    /// Which collective post `number`, which still stands, is of.
    pub fn collective_of(&self, number: u64) -> u64 {
        let place = self.place_of(number);
        self.collective_at.get(place).copied().unwrap_or(number)
    }

    /// Post `number` of `rank` was there.
    #[inline]
    pub fn saw(&mut self, rank: u32, number: u64) {
        if let Some(seen) = self.seen.get_mut(rank as usize) {
            *seen = (*seen).max(number + 1);
        }
    }

    /// Numbers of own posts that still stand.
    pub const fn standing(&self) -> std::ops::Range<u64> {
        self.next.saturating_sub(self.places)..self.next
    }
}
