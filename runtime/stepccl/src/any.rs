//! A receive from any source, and which receive meets which message.
//!
//! A message meets the receive that was posted first among those that may take it: receives from
//! its sender, and receives from any source.

use std::collections::VecDeque;
use std::sync::Arc;

use stepccl_engine::{Board, EngineError, Look};

use crate::context::{Advance, Context, Failure};
use crate::pair::{Direction, PairTask};
use crate::rounds::{Await, Sign};
use crate::work::WorkState;

/// Receives that are posted and have not met their message, in the order in which they were
/// posted. Pure.
#[derive(Debug)]
pub(crate) struct Receives {
    next: u64,
    /// Receives from each rank, until they have ended.
    from: Box<[VecDeque<u64>]>,
    /// Receives from any source, until they have met a message.
    any: VecDeque<u64>,
    /// Rank whose message a receive from any source is taking now.
    met: Option<u32>,
    /// Rank that is asked first next time.
    turn: u32,
}

impl Receives {
    pub fn new(ranks: u32) -> Self {
        Self {
            next: 0,
            from: (0..ranks).map(|_| VecDeque::new()).collect(),
            any: VecDeque::new(),
            met: None,
            turn: 0,
        }
    }

    fn order(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// A receive from `peer` is posted; its place in the order.
    pub fn post(&mut self, peer: u32) -> u64 {
        let order = self.order();
        self.from[peer as usize].push_back(order);
        order
    }

    /// A receive from any source is posted; its place in the order.
    pub fn post_any(&mut self) -> u64 {
        let order = self.order();
        self.any.push_back(order);
        order
    }

    /// Whether a receive from `peer` may take that rank's next message. One that was never posted
    /// has nothing beside it.
    pub fn may_take(&self, peer: u32, order: Option<u64>) -> bool {
        order.is_none_or(|order| {
            self.met != Some(peer) && self.any.front().is_none_or(|any| *any > order)
        })
    }

    /// Whether the receive from any source of place `order` may take the next message of `peer`.
    pub fn may_meet(&self, peer: u32, order: u64) -> bool {
        self.from[peer as usize].front().is_none_or(|posted| *posted > order)
    }

    /// The first receive from any source takes a message of `peer`.
    pub fn meet(&mut self, peer: u32) {
        self.any.pop_front();
        self.met = Some(peer);
        self.turn = (peer + 1) % self.from.len() as u32;
    }

    /// That message is there.
    pub const fn met_ends(&mut self) {
        self.met = None;
    }

    /// The first posted receive from `peer` has ended.
    pub fn ends(&mut self, peer: u32) {
        self.from[peer as usize].pop_front();
    }

    /// Ranks in the order in which they are asked; the one asked last comes last, so that none is
    /// forgotten.
    pub fn turns(&self) -> impl Iterator<Item = u32> + use<> {
        let (turn, ranks) = (self.turn, self.from.len() as u32);
        (0..ranks).map(move |at| (turn + at) % ranks)
    }
}

/// A receive from any source.
#[derive(Debug)]
pub(crate) struct AnyTask {
    tag: i32,
    memory: *mut u8,
    bytes: usize,
    order: u64,
    /// Once a message was met.
    pair: Option<PairTask>,
    /// Where the source is told.
    state: Arc<WorkState>,
}

// SAFETY:
// - The pointer is a number here; only the engine reads through it, under the contract of
//   `Engine::register`, which does not depend on the thread.
unsafe impl Send for AnyTask {}

impl AnyTask {
    /// # Safety
    ///
    /// As [`PairTask::new`].
    pub const unsafe fn new(
        tag: i32,
        memory: *mut u8,
        bytes: usize,
        state: Arc<WorkState>,
    ) -> Self {
        Self { tag, memory, bytes, order: 0, pair: None, state }
    }

    /// It is in its queue now.
    pub fn posted(&mut self, receives: &mut Receives) {
        self.order = receives.post_any();
    }

    pub fn advance(&mut self, cx: &mut Context) -> Result<Advance, Failure> {
        if self.pair.is_none() {
            match self.source(cx)? {
                Some(peer) => {
                    cx.receives.meet(peer);
                    self.state.set_source(peer);
                    // SAFETY:
                    // - `new` was promised what this asks for.
                    let pair = unsafe {
                        PairTask::new(Direction::Recv, peer, self.tag, self.memory, self.bytes)
                    };
                    self.pair = Some(pair);
                }
                None => return Ok(Advance::Idle),
            }
        }
        let Some(pair) = &mut self.pair else { return Ok(Advance::Idle) };
        let advance = pair.advance(cx)?;
        if advance == Advance::Done {
            cx.receives.met_ends();
        }
        Ok(advance)
    }

    /// A rank whose message is there and may be taken.
    fn source(&self, cx: &mut Context) -> Result<Option<u32>, EngineError> {
        let flag = cx.geometry.sent_flag(cx.rank);
        let (own, board) = (cx.rank, Board::Pair(cx.rank));
        for rank in cx.receives.turns() {
            if rank == cx.rank || !cx.receives.may_meet(rank, self.order) {
                continue;
            }
            let sign = if cx.pairs.shape().is_some() {
                let number = cx.pairs.next(rank);
                if cx.engine.look(rank, board, number)? != Look::Absent {
                    return Ok(Some(rank));
                }
                Sign::SourceMessage { own, number }
            } else {
                let value = cx.taken[rank as usize] + 1;
                if cx.engine.flag(rank, flag)? >= value {
                    return Ok(Some(rank));
                }
                Sign::Source { flag, value }
            };
            cx.waits.push(Await { rank, sign, lane: 0 });
        }
        Ok(None)
    }

    /// Give the caller's memory back. Fails while a channel still uses it.
    pub fn release(&mut self, cx: &mut Context) -> Result<(), EngineError> {
        self.pair.as_mut().map_or(Ok(()), |pair| pair.release(cx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_meets_the_receive_that_was_posted_first() {
        let mut receives = Receives::new(3);
        let first = receives.post(1);
        let any = receives.post_any();
        let later = receives.post(1);
        let other = receives.post(2);
        assert!(receives.may_take(1, Some(first)));
        assert!(!receives.may_meet(1, any), "an earlier receive from rank 1 is first");
        assert!(receives.may_meet(2, any), "the receive from rank 2 is later");
        assert!(!receives.may_take(2, Some(other)));
        receives.ends(1);
        assert!(receives.may_meet(1, any));
        assert!(!receives.may_take(1, Some(later)));
        receives.meet(2);
        assert!(receives.may_take(1, Some(later)));
        assert!(!receives.may_take(2, Some(other)), "its message comes behind the one being taken");
        receives.met_ends();
        assert!(receives.may_take(2, Some(other)));
    }

    #[test]
    fn whoever_was_met_last_is_asked_last() {
        let mut receives = Receives::new(4);
        receives.post_any();
        receives.meet(2);
        assert_eq!(receives.turns().collect::<Vec<_>>(), [3, 0, 1, 2]);
        assert!(receives.may_take(0, None));
    }
}
