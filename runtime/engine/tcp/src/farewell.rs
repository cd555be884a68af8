//! How a rank leaves: nobody who still reads its staging may be left without it.
//!
//! A rank is done with a collective when it has all it needs, and may leave while others still
//! read its staging. So it waits a moment for the others to leave too, which they mostly do; to
//! those who do not it sends what is in its staging; and it closes a connection when the other
//! side has said that it heard all.

use std::time::{Duration, Instant};

use stepccl_engine::RankState;

use crate::frame::{CHUNK_BYTES, Frame};
use crate::inbox::Inbox;
use crate::reactor::leaves;
use crate::shared::Shared;

/// How long the others may take to leave too before they are sent the staging.
const GRACE: Duration = Duration::from_millis(200);
/// How long a peer may take to hear the goodbye.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same after a failure, when nobody needs anything of this rank but its word.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);

/// The end of an engine.
#[derive(Debug)]
pub(crate) struct Farewell {
    failed: bool,
    started: Instant,
    said: Vec<bool>,
}

impl Farewell {
    pub(crate) fn new(shared: &Shared, state: RankState) -> Self {
        Self {
            failed: state != RankState::Closed,
            started: Instant::now(),
            said: vec![false; shared.peers.len()],
        }
    }

    /// Do what is due. Whether all is done.
    pub(crate) fn step(&mut self, shared: &Shared, inboxes: &[Inbox], now: Instant) -> bool {
        let waited = now.saturating_duration_since(self.started);
        if waited > if self.failed { SHORT_PATIENCE } else { PATIENCE } {
            return true;
        }
        let mut done = true;
        for ((peer, said), inbox) in shared.peers.iter().zip(&mut self.said).zip(inboxes) {
            if peer.is_gone() {
                continue;
            }
            if !*said && (self.failed || leaves(peer) || waited >= GRACE) {
                *said = true;
                let needs_will = !self.failed && !leaves(peer);
                shared.send(peer, |outbox| {
                    if needs_will {
                        leave_staging(shared, outbox);
                    }
                    // Behind all payloads.
                    outbox.last = Some(Frame::Bye);
                });
            }
            done &= *said && inbox.bye_heard && peer.outbox().is_empty();
        }
        done
    }
}

/// Send what is not zero of the staging.
fn leave_staging(shared: &Shared, outbox: &mut crate::outbox::Outbox) {
    let mut offset = 0;
    while offset < shared.staging.bytes() {
        let bytes = CHUNK_BYTES.min(shared.staging.bytes() - offset);
        if let Some(part) = shared.staging.part(offset, bytes)
            && !part.is_zero()
        {
            outbox.will(offset, part);
        }
        offset += bytes;
    }
}
