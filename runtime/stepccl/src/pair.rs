//! Messages between two ranks: a small ring of slots in the sender's staging for each receiver.
//!
//! The sender fills slots and raises `sent`, the receiver empties them and raises `taken`. The
//! first slot of a message begins with a header, so that a receive of another size or tag is an
//! error and not wrong data.

use stepccl_engine::{EngineError, Operation, RegionId, Submission, Token, UserMemory};
use stepccl_plan::Targets;

use crate::any::Receives;
use crate::context::{Advance, Context, Failure};
use crate::geometry::{HEADER_BYTES, STREAMING_BYTES};

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Send,
    Recv,
}

/// A send or recv under way.
#[derive(Debug)]
pub(crate) struct PairTask {
    direction: Direction,
    peer: u32,
    tag: i32,
    memory: *mut u8,
    bytes: usize,
    header: Box<Header>,
    header_region: Option<RegionId>,
    region: Option<RegionId>,
    stage: Stage,
    moved_bytes: usize,
    pending: Option<Token>,
    /// Place of a receive among those posted.
    order: Option<u64>,
}

// SAFETY:
// - The pointer is a number here; only the engine reads through it, under the contract of
//   `Engine::register`, which does not depend on the thread.
unsafe impl Send for PairTask {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    New,
    /// The next slot is waited for.
    Slot,
    /// The slot is there and its header is to be moved.
    Header,
    /// The slot's payload is to be moved, from this offset in the slot on.
    Payload {
        from: usize,
    },
    /// The slot is done.
    Tell,
}

#[repr(C, align(64))]
#[derive(Debug)]
struct Header([u8; HEADER_BYTES]);

const MAGIC: u32 = 0x5343_4d31;

impl Header {
    fn new(tag: i32, bytes: u64) -> Self {
        let mut h = [0; HEADER_BYTES];
        h[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        h[4..8].copy_from_slice(&tag.to_le_bytes());
        h[8..16].copy_from_slice(&bytes.to_le_bytes());
        Self(h)
    }

    /// Tag and bytes, where this is a header at all.
    fn read(&self) -> Option<(i32, u64)> {
        let word =
            |at: usize| -> [u8; 4] { [self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]] };
        let low = u64::from(u32::from_le_bytes(word(8)));
        let high = u64::from(u32::from_le_bytes(word(12)));
        (u32::from_le_bytes(word(0)) == MAGIC)
            .then(|| (i32::from_le_bytes(word(4)), high << 32 | low))
    }
}

impl PairTask {
    /// # Safety
    ///
    /// `memory` must be valid for `bytes` bytes, and untouched by others, until the task is done
    /// or `release` has returned.
    pub unsafe fn new(
        direction: Direction,
        peer: u32,
        tag: i32,
        memory: *mut u8,
        bytes: usize,
    ) -> Self {
        Self {
            direction,
            peer,
            tag,
            memory,
            bytes,
            header: Box::new(Header::new(tag, bytes as u64)),
            header_region: None,
            region: None,
            stage: Stage::New,
            moved_bytes: 0,
            pending: None,
            order: None,
        }
    }

    /// It is in its queue now.
    pub fn posted(&mut self, receives: &mut Receives) {
        if self.direction == Direction::Recv {
            self.order = Some(receives.post(self.peer));
        }
    }

    fn start(&mut self, cx: &mut Context) -> Result<(), EngineError> {
        let header = UserMemory {
            base: (&raw mut *self.header).cast(),
            bytes: HEADER_BYTES as u64,
            writable: true,
            streaming: false,
        };
        let payload = UserMemory {
            base: self.memory,
            bytes: self.bytes as u64,
            writable: self.direction == Direction::Recv,
            streaming: self.bytes >= STREAMING_BYTES,
        };
        // SAFETY:
        // - The header is boxed, lives as long as the task, and is not touched while a header
        //   operation is in progress; the task is released before it is dropped.
        // - `new` was promised that the payload stays valid until the task is released.
        unsafe {
            self.header_region = Some(cx.engine.register(header)?);
            if self.bytes > 0 {
                self.region = Some(cx.engine.register(payload)?);
            }
        }
        Ok(())
    }

    pub fn advance(&mut self, cx: &mut Context) -> Result<Advance, Failure> {
        let mut moved = false;
        loop {
            if let Some(token) = self.pending {
                if !cx.finished(token)? {
                    return Ok(if moved { Advance::Moved } else { Advance::Idle });
                }
                self.pending = None;
                self.moved()?;
            }
            match self.stage {
                Stage::New => {
                    self.start(cx)?;
                    self.stage = Stage::Slot;
                }
                Stage::Slot => {
                    if !self.slot_ready(cx)? {
                        return Ok(if moved { Advance::Moved } else { Advance::Idle });
                    }
                    let first = self.moved_bytes == 0;
                    self.stage = if first { Stage::Header } else { Stage::Payload { from: 0 } };
                }
                Stage::Header | Stage::Payload { .. } => match self.transfer(cx)? {
                    Submission::Done => self.moved()?,
                    Submission::InProgress(token) => self.pending = Some(token),
                    Submission::Full => {
                        return Ok(if moved { Advance::Moved } else { Advance::Idle });
                    }
                },
                Stage::Tell => {
                    self.tell(cx)?;
                    if self.moved_bytes == self.bytes {
                        self.release(cx)?;
                        if self.order.is_some() {
                            cx.receives.ends(self.peer);
                        }
                        return Ok(Advance::Done);
                    }
                    self.stage = Stage::Slot;
                    // A peer that keeps up must not keep this thread from everything else.
                    return Ok(Advance::Moved);
                }
            }
            moved = true;
        }
    }

    fn slot_ready(&self, cx: &mut Context) -> Result<bool, EngineError> {
        let peer = self.peer as usize;
        let (flag, value) = match self.direction {
            Direction::Send => (
                cx.geometry.taken_flag(cx.rank),
                (cx.sent[peer] + 1).saturating_sub(cx.geometry.pair_slots()),
            ),
            Direction::Recv => (cx.geometry.sent_flag(cx.rank), cx.taken[peer] + 1),
        };
        let may = self.direction == Direction::Send
            || self.moved_bytes > 0
            || cx.receives.may_take(self.peer, self.order);
        if may && cx.engine.flag(self.peer, flag)? >= value {
            return Ok(true);
        }
        cx.wait_for(self.peer, flag, value);
        Ok(false)
    }

    /// Bytes of payload in the present slot.
    fn piece(&self, cx: &Context, from: usize) -> usize {
        (cx.geometry.pair_slot_bytes - from).min(self.bytes - self.moved_bytes)
    }

    /// Move the header or the payload of the present slot.
    fn transfer(&self, cx: &mut Context) -> Result<Submission, EngineError> {
        let (from, bytes, region, done) = match self.stage {
            Stage::Payload { from } => (from, self.piece(cx, from), self.region, self.moved_bytes),
            _ => (0, HEADER_BYTES, self.header_region, 0),
        };
        let Some(region) = region.filter(|_| bytes > 0) else { return Ok(Submission::Done) };
        let own = stepccl_engine::Address::start_of(region).checked_add(done as u64)?;
        let peer = self.peer as usize;
        let (src, dst) = match self.direction {
            Direction::Send => {
                let slot = cx.geometry.pair_slot(cx.rank, self.peer, cx.sent[peer]);
                (own, cx.staged(cx.rank, slot + from as u64)?)
            }
            Direction::Recv => {
                let slot = cx.geometry.pair_slot(self.peer, cx.rank, cx.taken[peer]);
                (cx.staged(self.peer, slot + from as u64)?, own)
            }
        };
        cx.submit(&Operation::Copy { src, dst, bytes: bytes as u64 })
    }

    /// A transfer is done: what comes next.
    fn moved(&mut self) -> Result<(), Failure> {
        self.stage = match self.stage {
            Stage::Header => {
                if self.direction == Direction::Recv {
                    self.check_header()?;
                }
                Stage::Payload { from: HEADER_BYTES }
            }
            _ => Stage::Tell,
        };
        Ok(())
    }

    fn check_header(&self) -> Result<(), Failure> {
        match self.header.read() {
            Some((tag, bytes)) if tag == self.tag && bytes == self.bytes as u64 => Ok(()),
            Some((sent_tag, sent_bytes)) => Err(Failure::Mismatch { sent_bytes, sent_tag }),
            None => Err(Failure::Engine(EngineError::Protocol {
                what: "header of a message",
                detail: format!("rank {} wrote no header where one must be", self.peer),
            })),
        }
    }

    /// Tell the peer that the slot is filled or emptied.
    fn tell(&mut self, cx: &mut Context) -> Result<(), EngineError> {
        let from = if self.moved_bytes == 0 { HEADER_BYTES } else { 0 };
        self.moved_bytes += self.piece(cx, from);
        let peer = self.peer as usize;
        let (flag, value) = match self.direction {
            Direction::Send => {
                cx.sent[peer] += 1;
                (cx.geometry.sent_flag(self.peer), cx.sent[peer])
            }
            Direction::Recv => {
                cx.taken[peer] += 1;
                (cx.geometry.taken_flag(self.peer), cx.taken[peer])
            }
        };
        cx.engine.signal(Targets::One(self.peer), flag, value)
    }

    /// Give the caller's memory back. Fails while a channel still uses it.
    pub fn release(&mut self, cx: &mut Context) -> Result<(), EngineError> {
        for region in [self.region.take(), self.header_region.take()].into_iter().flatten() {
            cx.engine.unregister(region)?;
        }
        Ok(())
    }
}
