//! Who and what is to blame: from a failure to the error that the user reads.

use std::time::{Duration, Instant};

use stepccl_engine::{Board, EngineError, Look, LostPeer, RankState};

use super::solo::Solo;
use super::{Fatal, Progress, all_sources_lost};
use crate::called::Called;
use crate::context::Failure;
use crate::error::{Calls, Error, LossReason, OperationName, Ranks, With};
use crate::rounds::Await;
use crate::task::Identity;

/// How long a process may take to die.
const SOON: Duration = Duration::from_millis(300);

impl Progress {
    /// A peer whose loss keeps a present wait from ever ending, or who made it so, and the lane of
    /// that wait.
    pub(super) fn lost_peer(&mut self) -> Option<(LostPeer, usize)> {
        let (lost, lane) = self.missed_peer()?;
        Some((self.cause_of(lost), lane))
    }

    fn missed_peer(&mut self) -> Option<(LostPeer, usize)> {
        let mut lost = Vec::new();
        self.cx.engine.lost_peers(&mut lost);
        let engine = self.cx.engine.as_ref();
        // After the look at the peers: what a peer signalled before it left has arrived by now.
        let open: Vec<_> = self.cx.waits.iter().copied().filter(|w| !w.is_over(engine)).collect();
        let firm = |w: &&Await| !w.is_of_any();
        let Some(any) = open.iter().find(firm).map(|w| w.lane) else {
            return all_sources_lost(&self.cx.waits, &open, &lost);
        };
        let awaited =
            |l: &LostPeer| open.iter().filter(firm).find(|w| w.rank == l.rank).map(|w| w.lane);
        // A rank that left in good order is missed only by who waits for it.
        let gone = |l: &&LostPeer| l.state != RankState::Closed;
        lost.iter()
            .find_map(|l| awaited(l).map(|lane| (*l, lane)))
            .or_else(|| lost.iter().find(gone).map(|l| (*l, any)))
    }

    /// The rank that `lost` blames, where that is lost too and by itself; `lost` otherwise.
    fn cause_of(&mut self, lost: LostPeer) -> LostPeer {
        let RankState::Failed { culprit } = lost.state else { return lost };
        let mut others = Vec::new();
        // Looked at again: the culprit was lost before the one that blames it.
        self.cx.engine.lost_peers(&mut others);
        let first = |l: &LostPeer| match l.state {
            RankState::Running => true,
            RankState::Closed => false,
            RankState::Failed { culprit } => culprit == l.rank,
        };
        others.into_iter().find(|l| l.rank == culprit && first(l)).unwrap_or(lost)
    }

    pub(super) fn peer_lost(&self, lost: LostPeer, needs: &Identity, now: Instant) -> Box<Fatal> {
        let (reason, culprit) = match lost.state {
            RankState::Running => match self.cx.engine.why_lost(lost.rank) {
                Some(detail) => (LossReason::Unreachable { detail }, lost.rank),
                None => (LossReason::Died, lost.rank),
            },
            RankState::Closed => (LossReason::Closed, lost.rank),
            RankState::Failed { culprit } => match self.cx.engine.why_lost(lost.rank) {
                Some(reason) if culprit == lost.rank => (LossReason::Aborted { reason }, culprit),
                _ => (LossReason::Failed { culprit }, culprit),
            },
        };
        let error = Error::PeerLost {
            operation: Box::new(self.name_of(needs)),
            peer: lost.rank,
            pid: lost.pid,
            reason,
            waited: needs.waited(now),
        };
        Box::new(Fatal { error, culprit, operation: Some(needs.sequence) })
    }

    pub fn name_of(&self, identity: &Identity) -> OperationName {
        OperationName {
            communicator: self.name.clone(),
            rank: self.cx.rank,
            ranks: self.cx.ranks,
            name: identity.name,
            sequence: identity.sequence,
            bytes: identity.bytes,
            with: identity.with,
        }
    }

    pub(super) fn fatal(&mut self, failure: &Failure, identity: &Identity) -> Box<Fatal> {
        let suspect = match failure {
            Failure::Engine(EngineError::Lost { rank, .. }) => Some(*rank),
            Failure::Pull { from, .. } => Some(*from),
            _ => None,
        };
        if let Some(lost) = suspect.and_then(|rank| self.lost_soon(rank)) {
            return self.or_mismatch(self.peer_lost(lost, identity, Instant::now()), identity);
        }
        self.fatal_as_told(failure, identity)
    }

    pub(super) fn fatal_as_told(&self, failure: &Failure, identity: &Identity) -> Box<Fatal> {
        let error = self.explain(failure, identity);
        Box::new(Fatal { error, culprit: self.cx.rank, operation: Some(identity.sequence) })
    }

    /// Whether `rank` is lost. Memory of a process goes before its sockets do, so it is waited for a
    /// little.
    pub(super) fn lost_soon(&mut self, rank: u32) -> Option<LostPeer> {
        let until = Instant::now() + SOON;
        loop {
            let mut lost = Vec::new();
            self.cx.engine.lost_peers(&mut lost);
            if let Some(found) = lost.into_iter().find(|l| l.rank == rank) {
                return Some(self.cause_of(found));
            }
            if Instant::now() >= until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(super) fn explain(&self, failure: &Failure, identity: &Identity) -> Error {
        let operation = self.name_of(identity);
        match failure {
            Failure::Engine(source) => self.engine_error(&operation, source),
            Failure::Pull { error, .. } => self.engine_error(&operation, error),
            Failure::Calls { number } => self.differ(&operation, *number),
            Failure::Mismatch { sent_bytes, sent_tag } => Error::MessageMismatch {
                peer: match identity.with {
                    Some(With::Peer(peer) | With::Root(peer)) => peer,
                    None => self.cx.rank,
                },
                sent_bytes: *sent_bytes,
                sent_tag: *sent_tag,
                expected_bytes: identity.bytes,
                expected_tag: identity.tag,
                operation: Box::new(operation),
            },
        }
    }

    /// Who called what as collective `number`.
    pub(super) fn differ(&self, operation: &OperationName, number: u64) -> Error {
        let mut calls: Vec<(Ranks, String)> = Vec::new();
        for rank in 0..self.cx.ranks {
            let call = match self.cx.engine.look(rank, Board::Collective, number) {
                Ok(Look::Here(words)) => Called(words).to_string(),
                Ok(Look::Absent) => "nothing yet".to_owned(),
                Ok(Look::Past) | Err(_) => "something that is not known any more".to_owned(),
            };
            match calls.iter_mut().find(|(_, c)| *c == call) {
                Some((Ranks(ranks), _)) => ranks.push(rank),
                None => calls.push((Ranks(vec![rank]), call)),
            }
        }
        let number = self.cx.posts.collective_of(number);
        Error::CallMismatch { operation: Box::new(operation.clone()), number, calls: Calls(calls) }
    }

    /// A late or lost peer may be so because ranks called different collectives: that is the error
    /// to tell then. Only what still stands on the boards is known.
    pub(super) fn or_mismatch(&self, fatal: Box<Fatal>, identity: &Identity) -> Box<Fatal> {
        let words = |rank, number| self.cx.engine.look(rank, Board::Collective, number);
        for number in self.cx.posts.standing() {
            let Ok(own @ Look::Here(_)) = words(self.cx.rank, number) else { continue };
            let culprit = (0..self.cx.ranks).find(|rank| match words(*rank, number) {
                Ok(theirs @ Look::Here(_)) => theirs != own,
                _ => false,
            });
            if let Some(culprit) = culprit {
                let error = self.differ(&self.name_of(identity), number);
                return Box::new(Fatal { error, culprit, operation: fatal.operation });
            }
        }
        fatal
    }

    pub(super) fn engine_error(&self, operation: &OperationName, source: &EngineError) -> Error {
        let context = format!("{operation}, {} engine", self.cx.engine.name());
        Error::Engine { context, source: source.clone() }
    }

    /// A failure that no operation caused is told of the first.
    pub(super) fn fatal_of_first(&self, failure: &Failure, own: Solo<'_>) -> Box<Fatal> {
        match self.under_way(own).next() {
            Some((_, identity)) => self.fatal_as_told(failure, identity),
            None => Box::new(Fatal {
                error: Error::System {
                    what: format!("communicator '{}', rank {}", self.name, self.cx.rank),
                    message: format!("{failure:?}"),
                },
                culprit: self.cx.rank,
                operation: None,
            }),
        }
    }
}
