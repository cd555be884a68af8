//! Who has finished which rounds: when a slot of the staging may be written again.
//!
//! Rounds of all collectives of a communicator are numbered through, the same on every rank. A
//! rank may write a slot only when every rank has finished the round that used it before.

use stepccl_engine::{Board, Engine, EngineError, Look};

use crate::geometry::{FINISHED, SMALL_SLOTS};
use crate::prepared::{Prepared, Slots};

/// What of a rank is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// A flag reaches a value.
    Flag { flag: u32, value: u64 },
    /// A message for this rank, `own`.
    Message { own: u32, number: u64 },
    /// A flag reaches a value, of this rank or of another one.
    Source { flag: u32, value: u64 },
    /// A message for this rank, `own`, of that rank or of another one.
    SourceMessage { own: u32, number: u64 },
    /// A post on the board of collectives.
    Post(u64),
}

/// A wait for a sign of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Await {
    pub rank: u32,
    pub sign: Sign,
    /// Lane of the operation that waits; told by who drives the lanes.
    pub lane: usize,
}

impl Await {
    /// Whether the wait is over; an engine that cannot tell ends it too.
    #[inline]
    pub fn is_over(&self, engine: &dyn Engine) -> bool {
        match self.sign {
            Sign::Flag { flag, value } | Sign::Source { flag, value } => {
                engine.flag(self.rank, flag).map_or(true, |v| v >= value)
            }
            Sign::Post(number) => self.is_posted(engine, Board::Collective, number),
            Sign::Message { own, number } | Sign::SourceMessage { own, number } => {
                self.is_posted(engine, Board::Pair(own), number)
            }
        }
    }

    #[inline]
    fn is_posted(&self, engine: &dyn Engine, board: Board, number: u64) -> bool {
        engine.look(self.rank, board, number).ok().is_none_or(|look| look != Look::Absent)
    }

    /// Whether another rank would do as well.
    pub const fn is_of_any(&self) -> bool {
        matches!(self.sign, Sign::Source { .. } | Sign::SourceMessage { .. })
    }
}

/// Round numbers of one rank.
#[derive(Debug)]
pub(crate) struct Rounds {
    /// Number of the next round to be handed out.
    next: u64,
    /// Rounds before this have ended that used the large slots.
    last_large_end: u64,
    /// Rounds that each rank is known to have finished; a lower bound.
    finished: Box<[u64]>,
    /// Smallest of `finished`.
    all: u64,
    own: usize,
}

impl Rounds {
    pub fn new(rank: u32, ranks: u32) -> Self {
        Self {
            next: 0,
            last_large_end: 0,
            finished: vec![0; ranks as usize].into(),
            all: 0,
            own: rank as usize,
        }
    }

    /// Take the numbers of an operation's rounds; returns the first and what must be finished
    /// before its large slots are written.
    pub fn begin(&mut self, prepared: &Prepared) -> (u64, u64) {
        let first = self.next;
        let free_from = self.last_large_end;
        self.next += prepared.rounds;
        if prepared.slots == Slots::Large && prepared.rounds > 0 {
            self.last_large_end = self.next;
        }
        (first, free_from)
    }

    /// Rounds that all must have finished before round `index` (number `number`) writes staging.
    pub fn needed(prepared: &Prepared, index: u64, number: u64, free_from: u64) -> u64 {
        match prepared.slots {
            Slots::Small => (number + 1).saturating_sub(SMALL_SLOTS),
            Slots::Large => match index.checked_sub(u64::from(prepared.depth)) {
                Some(before) => number - index + before + 1,
                None => free_from,
            },
        }
    }

    /// A rank was seen at work on an operation whose first round is `first`.
    pub fn saw(&mut self, rank: u32, first: u64) {
        if let Some(known) = self.finished.get_mut(rank as usize)
            && *known < first
        {
            *known = first;
        }
    }

    /// Whether all ranks have finished `needed` rounds; otherwise the flag of one that has not.
    pub fn check(
        &mut self,
        needed: u64,
        engine: &dyn Engine,
    ) -> Result<Option<Await>, EngineError> {
        if self.all >= needed {
            return Ok(None);
        }
        let mut all = u64::MAX;
        for (rank, known) in self.finished.iter_mut().enumerate() {
            if rank == self.own {
                continue;
            }
            if *known < needed {
                *known = (*known).max(engine.flag(rank as u32, FINISHED)?);
                if *known < needed {
                    let rank = rank as u32;
                    let sign = Sign::Flag { flag: FINISHED, value: needed };
                    return Ok(Some(Await { rank, sign, lane: 0 }));
                }
            }
            all = all.min(*known);
        }
        self.all = all;
        Ok(None)
    }
}
