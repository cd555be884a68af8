//! Messages between two ranks: a small ring of slots in the sender's staging for each receiver.
//!
//! The sender fills slots and raises `sent`, the receiver empties them and raises `taken`. Each
//! message is announced by a post with its tag and length, so that a receive of another size or tag
//! is an error and not wrong data; a short one is in its post and needs no slot. Where ranks may read
//! one another's memory, the post of a long one says where it lies: the receiver reads it there, and
//! the sender waits until it has. Where the engine has no boards, the first slot of a message begins
//! with a header instead.

use stepccl_engine::{
    Board, EngineError, Look, Operation, Part, PartMut, RegionId, Submission, Token, UserMemory,
};
use stepccl_plan::Targets;

use crate::any::Receives;
use crate::context::{Advance, Context, Failure};
use crate::geometry::{HEADER_BYTES, STREAMING_BYTES};
use crate::header::Header;
use crate::pull::TURN_BYTES;

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
    /// Where messages are not announced by posts.
    header: Option<Box<Header>>,
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

/// How a message that is announced by a post travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// In the post itself.
    Post,
    /// The receiver reads it in the sender's process.
    Pull,
    Slots,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    New,
    /// The post is to be made or read.
    Post,
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
    /// What is left is to be read at this address in the sender's process.
    Pull(u64),
    /// The receiver is to read the message, whose post has this number.
    Read(u64),
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
            header: None,
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
        let payload = UserMemory {
            base: self.memory,
            bytes: self.bytes as u64,
            writable: self.direction == Direction::Recv,
            streaming: self.bytes >= STREAMING_BYTES,
        };
        // SAFETY:
        // - `new` was promised that the payload stays valid until the task is released.
        unsafe {
            if self.bytes > 0 {
                self.region = Some(cx.engine.register(payload)?);
            }
        }
        Ok(())
    }

    fn start_header(&mut self, cx: &mut Context) -> Result<(), EngineError> {
        let mut header = Box::new(Header::new(self.tag, self.bytes as u64));
        let base = (&raw mut header.0).cast();
        let bytes = HEADER_BYTES as u64;
        self.header = Some(header);
        // SAFETY:
        // - The header is boxed, lives as long as the task, and is not touched while a header
        //   operation is in progress; the task is released before it is dropped.
        let region = unsafe {
            cx.engine.register(UserMemory { base, bytes, writable: true, streaming: false })?
        };
        self.header_region = Some(region);
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
                Stage::New if cx.pairs.shape().is_some() => self.stage = Stage::Post,
                Stage::New => {
                    self.start_header(cx)?;
                    self.start(cx)?;
                    self.stage = Stage::Slot;
                }
                Stage::Post => {
                    let is_there = match self.direction {
                        Direction::Send => self.announce(cx)?,
                        Direction::Recv => self.hear(cx)?,
                    };
                    if !is_there {
                        return Ok(if moved { Advance::Moved } else { Advance::Idle });
                    }
                    if self.moved_bytes == self.bytes {
                        self.end(cx);
                        return Ok(Advance::Done);
                    }
                    if self.stage == Stage::Post {
                        self.start(cx)?;
                        self.stage = Stage::Slot;
                    }
                }
                Stage::Pull(address) => {
                    self.pull(address, cx)?;
                    if self.moved_bytes < self.bytes {
                        // Others get their turn.
                        return Ok(Advance::Moved);
                    }
                    self.tell_read(true, cx)?;
                    self.end(cx);
                    return Ok(Advance::Done);
                }
                Stage::Read(number) => {
                    let flag = cx.geometry.read_flag(cx.rank);
                    if cx.engine.flag(self.peer, flag)? <= number {
                        cx.wait_for(self.peer, flag, number + 1);
                        return Ok(if moved { Advance::Moved } else { Advance::Idle });
                    }
                    return Ok(Advance::Done);
                }
                Stage::Slot => {
                    if !self.slot_ready(cx)? {
                        return Ok(if moved { Advance::Moved } else { Advance::Idle });
                    }
                    let first = self.moved_bytes == 0 && self.header.is_some();
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
                        self.end(cx);
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

    /// The message is through.
    fn end(&self, cx: &mut Context) {
        if self.order.is_some() {
            cx.receives.ends(self.peer);
        }
    }

    /// Post the message, whole where it is short. Whether there was room.
    fn announce(&mut self, cx: &mut Context) -> Result<bool, EngineError> {
        if let Some(wait) = cx.pairs.room(self.peer, &cx.geometry, cx.engine.as_ref())? {
            cx.waits.push(wait);
            return Ok(false);
        }
        let number = cx.pairs.post(self.peer);
        let words = [u64::from(self.tag.cast_unsigned()), self.bytes as u64];
        let way = self.way(cx);
        let address = (self.memory.expose_provenance() as u64).to_le_bytes();
        let part = match way {
            Way::Post => Part { base: self.memory, bytes: self.bytes },
            Way::Pull => Part { base: address.as_ptr().cast_mut(), bytes: address.len() },
            Way::Slots => Part { base: self.memory, bytes: 0 },
        };
        // SAFETY:
        // - `new` was promised that the payload is valid; the address lives through the call.
        unsafe { cx.engine.post(Board::Pair(self.peer), number, words, &[part])? };
        match way {
            Way::Post => self.moved_bytes = self.bytes,
            Way::Pull => self.stage = Stage::Read(number),
            // The receiver hears with the first slot.
            Way::Slots => return Ok(true),
        }
        cx.engine.ring(Targets::One(self.peer))?;
        Ok(true)
    }

    /// Read the post of the message, with the message where it is short. Whether it is there.
    fn hear(&mut self, cx: &mut Context) -> Result<bool, Failure> {
        let (number, board) = (cx.pairs.next(self.peer), Board::Pair(cx.rank));
        if !cx.receives.may_take(self.peer, self.order) {
            cx.wait_for_message(self.peer, number);
            return Ok(false);
        }
        let [tag, sent_bytes] = match cx.engine.look(self.peer, board, number)? {
            Look::Here(words) => words,
            Look::Absent => {
                cx.wait_for_message(self.peer, number);
                return Ok(false);
            }
            Look::Past => {
                return Err(Failure::Engine(EngineError::Protocol {
                    what: "post of a message",
                    detail: format!("rank {} has replaced one that was not read", self.peer),
                }));
            }
        };
        let sent_tag = (tag as u32).cast_signed();
        if sent_tag != self.tag || sent_bytes != self.bytes as u64 {
            return Err(Failure::Mismatch { sent_bytes, sent_tag });
        }
        let mut address = [0; 8];
        let (dst, bytes) = match self.way(cx) {
            Way::Post => (self.memory, self.bytes),
            Way::Pull => (address.as_mut_ptr(), address.len()),
            Way::Slots => (self.memory, 0),
        };
        let dst = PartMut { base: dst, bytes };
        // SAFETY:
        // - `new` was promised that the memory is valid, and nothing else touches the address.
        unsafe { cx.engine.fetch(self.peer, board, number, 0, dst)? };
        match self.way(cx) {
            Way::Post => self.moved_bytes = self.bytes,
            Way::Pull => {
                // It is read before anybody is told.
                self.stage = Stage::Pull(u64::from_le_bytes(address));
                return Ok(true);
            }
            Way::Slots => {}
        }
        self.tell_read(false, cx)?;
        Ok(true)
    }

    /// The message of a post was read: tell the sender, at once if it waits for that.
    fn tell_read(&self, at_once: bool, cx: &mut Context) -> Result<(), EngineError> {
        let Some(read) = cx.pairs.read(self.peer, at_once) else { return Ok(()) };
        let flag = cx.geometry.read_flag(self.peer);
        cx.engine.signal(Targets::One(self.peer), flag, read)
    }

    /// Read what is left of the message, a turn's worth at most.
    fn pull(&mut self, address: u64, cx: &mut Context) -> Result<(), Failure> {
        let (done, bytes) = (self.moved_bytes, (self.bytes - self.moved_bytes).min(TURN_BYTES));
        let dst = PartMut { base: self.memory.wrapping_add(done), bytes };
        // SAFETY:
        // - `new` was promised that the memory is valid, and nobody else touches it.
        unsafe { cx.pull(self.peer, address.wrapping_add(done as u64), dst, false)? };
        self.moved_bytes += bytes;
        Ok(())
    }

    /// How the message travels; sender and receiver must find the same.
    const fn way(&self, cx: &Context) -> Way {
        match cx.pairs.shape() {
            Some(shape) if self.bytes <= shape.bytes => Way::Post,
            Some(_) if self.bytes >= cx.pull_from => Way::Pull,
            _ => Way::Slots,
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
            || self.header.is_none()
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
        match self.header.as_ref().and_then(|header| header.read()) {
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
        let headed = self.moved_bytes == 0 && self.header.is_some();
        let from = if headed { HEADER_BYTES } else { 0 };
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
