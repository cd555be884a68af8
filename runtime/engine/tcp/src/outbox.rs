//! What waits to be sent to one peer. Memory is bounded, and nothing here knows a socket.
//!
//! Small frames go before payloads, flags and posts before other small frames: a flag is never behind what
//! its rank said after it, such as its end. A payload is cut into chunks, so that a flag waits for
//! one chunk at most.

use std::collections::{HashSet, VecDeque};

use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use stepccl_engine::Reason;

use crate::area::Area;
use crate::frame::{CHUNK_BYTES, Frame, HEADER_BYTES, WORD_BYTES};

/// Bytes of small frames that go with one call, about.
const BATCH_BYTES: usize = 8 << 10;
/// Flags that may wait before those that were raised again are dropped.
const MANY_FLAGS: usize = 4096;
/// Answers to writes that may wait; a peer that does not take them is not read from.
pub(crate) const MANY_FRAMES: usize = 1024;

/// A payload under way.
#[derive(Clone, Copy, Debug)]
enum Bulk {
    /// Answer to a read: `left` is what is still to be sent of it.
    Answer { id: u32, left: Area },
    /// A write of this rank from memory that may be withdrawn.
    Write { id: u32, offset: u64, left: Area },
    /// Own staging for a peer that outlives this rank.
    Will { offset: u64, left: Area },
}

/// What says that something is done.
#[derive(Debug)]
enum Sign {
    Flag {
        flag: u32,
        value: u64,
    },
    /// A frame and its short payload; their number is bounded by who posts and fails.
    With(Frame, Box<[u8]>),
}

/// The chunk that is being sent.
#[derive(Debug)]
struct Chunk {
    header: [u8; HEADER_BYTES],
    header_sent: usize,
    /// What is left of the payload; zeros are sent where it was withdrawn.
    left: Area,
    withdrawn: bool,
    /// Memory of a caller, which may be withdrawn.
    callers: bool,
}

/// What came of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// All is sent.
    All,
    /// Something is left: the socket is full, or the budget was used up.
    Some,
}

/// Everything that waits for one peer.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Flags and posts, in the order in which they were raised and made.
    signs: VecDeque<Sign>,
    frames: VecDeque<Frame>,
    bulk: VecDeque<Bulk>,
    answers: usize,
    /// Sent when nothing else waits.
    pub(crate) last: Option<Frame>,
    /// Encoded small frames, of which the first `sent` bytes are sent.
    wire: Vec<u8>,
    sent: usize,
    chunk: Option<Chunk>,
    /// The last send found the socket full.
    pub(crate) blocked: bool,
    /// The peer said goodbye and was answered: it must not be asked for anything any more.
    pub(crate) farewell: bool,
    /// Events that the reactor watches for.
    pub(crate) watched: Option<EpollFlags>,
}

static ZEROS: [u8; 4096] = [0; 4096];

impl Outbox {
    /// Tell the peer that a flag was raised.
    pub(crate) fn flag(&mut self, flag: u32, value: u64) {
        if self.signs.len() >= MANY_FLAGS {
            self.drop_old_flags();
        }
        self.signs.push_back(Sign::Flag { flag, value });
    }

    /// Values only grow, so the last of each flag says all.
    fn drop_old_flags(&mut self) {
        let mut seen = HashSet::new();
        let signs = std::mem::take(&mut self.signs);
        for sign in signs.into_iter().rev() {
            if !matches!(sign, Sign::Flag { flag, .. } if !seen.insert(flag)) {
                self.signs.push_front(sign);
            }
        }
    }

    /// Put up a post: its two words and its data are `payload`.
    pub(crate) fn post(&mut self, pair: bool, number: u64, payload: &[u8]) {
        let bytes = (payload.len() as u64).saturating_sub(WORD_BYTES);
        self.signs.push_back(Sign::With(Frame::Post { pair, number, bytes }, payload.into()));
    }

    /// Say why this rank fails, before it says that it does.
    pub(crate) fn reason(&mut self, reason: &Reason) {
        self.signs.push_back(Sign::With(Frame::Reason, reason.as_bytes().as_slice().into()));
    }

    /// Send a frame without payload.
    pub(crate) fn frame(&mut self, frame: Frame) {
        self.frames.push_back(frame);
    }

    /// Answer read `id` with `memory`; `false` where the peer has asked for too much at once.
    pub(crate) fn answer(&mut self, id: u32, memory: Area, most: usize) -> bool {
        self.answers += 1;
        self.bulk.push_back(Bulk::Answer { id, left: memory });
        self.answers <= most
    }

    /// Write `memory` to the peer's staging at `offset`; it must stay until acknowledged or
    /// [`Outbox::withdraw`].
    pub(crate) fn write(&mut self, id: u32, offset: u64, memory: Area) {
        self.bulk.push_back(Bulk::Write { id, offset, left: memory });
    }

    /// Leave `memory`, own staging at `offset`, to the peer.
    pub(crate) fn will(&mut self, offset: u64, memory: Area) {
        self.bulk.push_back(Bulk::Will { offset, left: memory });
    }

    /// Small frames that wait.
    pub(crate) fn waiting_frames(&self) -> usize {
        self.frames.len()
    }

    /// Whether all is sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.signs.is_empty()
            && self.frames.is_empty()
            && self.bulk.is_empty()
            && self.wire.is_empty()
            && self.chunk.is_none()
            && self.last.is_none()
    }

    /// Touch no memory of a caller any more. A chunk that is under way goes on with zeros, so that
    /// the stream stays in step.
    pub(crate) fn withdraw(&mut self) {
        self.bulk.retain(|bulk| !matches!(bulk, Bulk::Write { .. }));
        if let Some(chunk) = &mut self.chunk
            && chunk.callers
        {
            chunk.withdrawn = true;
        }
    }

    /// Send through `send`, which takes memory and whether more follows at once, about `budget`
    /// bytes at most.
    ///
    /// # Errors
    ///
    /// What `send` says, less `EAGAIN` and `EINTR`.
    pub(crate) fn flush(
        &mut self,
        mut budget: u64,
        send: &mut dyn FnMut(Area, bool) -> Result<usize, Errno>,
    ) -> Result<Flushed, Errno> {
        loop {
            if self.chunk.is_none() && self.wire.is_empty() {
                self.next();
            }
            let (area, more) = match (&self.chunk, self.wire.is_empty()) {
                (Some(chunk), _) => chunk.next(),
                (None, false) => (bytes(&self.wire[self.sent..]), false),
                (None, true) => {
                    self.blocked = false;
                    return Ok(Flushed::All);
                }
            };
            if budget == 0 {
                self.blocked = false;
                return Ok(Flushed::Some);
            }
            match send(area, more) {
                Ok(count) => {
                    budget = budget.saturating_sub(count as u64);
                    self.took(count);
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => {
                    self.blocked = true;
                    return Ok(Flushed::Some);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Make the next small frames or the next chunk.
    fn next(&mut self) {
        while self.wire.len() < BATCH_BYTES {
            let frame = match self.signs.pop_front() {
                Some(Sign::Flag { flag, value }) => Frame::Flag { flag, value },
                Some(Sign::With(frame, payload)) => {
                    self.wire.extend_from_slice(&frame.encode());
                    self.wire.extend_from_slice(&payload);
                    continue;
                }
                None => match self.frames.pop_front() {
                    Some(frame) => frame,
                    None => break,
                },
            };
            self.wire.extend_from_slice(&frame.encode());
        }
        if !self.wire.is_empty() {
            return;
        }
        let Some(bulk) = self.bulk.front_mut() else {
            let last = self.last.take().map(|frame| frame.encode());
            self.wire.extend(last.into_iter().flatten());
            return;
        };
        let (Bulk::Answer { left, .. } | Bulk::Write { left, .. } | Bulk::Will { left, .. }) = bulk;
        let count = left.bytes().min(CHUNK_BYTES);
        let (now, rest) = (left.part(0, count), left.part(count, left.bytes() - count));
        let (Some(now), Some(rest)) = (now, rest) else { return };
        let callers = matches!(bulk, Bulk::Write { .. });
        let frame = match bulk {
            Bulk::Answer { id, .. } => Frame::Data { id: *id, bytes: count },
            Bulk::Write { id, offset, .. } => {
                let frame = Frame::Write { id: *id, offset: *offset, bytes: count };
                *offset += count;
                frame
            }
            Bulk::Will { offset, .. } => {
                let frame = Frame::Will { offset: *offset, bytes: count };
                *offset += count;
                frame
            }
        };
        let (Bulk::Answer { left, .. } | Bulk::Write { left, .. } | Bulk::Will { left, .. }) = bulk;
        *left = rest;
        self.chunk = Some(Chunk {
            header: frame.encode(),
            header_sent: 0,
            left: now,
            withdrawn: false,
            callers,
        });
        if rest.bytes() == 0
            && let Some(Bulk::Answer { .. }) = self.bulk.pop_front()
        {
            self.answers -= 1;
        }
    }

    fn took(&mut self, count: usize) {
        let Some(chunk) = &mut self.chunk else {
            self.sent += count;
            if self.sent >= self.wire.len() {
                self.wire.clear();
                self.sent = 0;
            }
            return;
        };
        if chunk.header_sent < HEADER_BYTES {
            chunk.header_sent += count;
            return;
        }
        let count = (count as u64).min(chunk.left.bytes());
        match chunk.left.part(count, chunk.left.bytes() - count) {
            Some(left) if left.bytes() > 0 => chunk.left = left,
            _ => self.chunk = None,
        }
    }
}

impl Chunk {
    /// What is to be sent next, and whether more follows at once.
    fn next(&self) -> (Area, bool) {
        if self.header_sent < HEADER_BYTES {
            return (bytes(&self.header[self.header_sent..]), true);
        }
        if self.withdrawn {
            let count = self.left.bytes().min(ZEROS.len() as u64) as usize;
            return (bytes(&ZEROS[..count]), false);
        }
        (self.left, false)
    }
}

/// Bytes of this crate's own, to be sent before anything else is done with them.
fn bytes(slice: &[u8]) -> Area {
    // SAFETY:
    // - The area is handed to one `send`, which only reads, while the slice is borrowed by
    //   `flush`; nothing keeps it.
    unsafe { Area::new(slice.as_ptr().cast_mut(), slice.len() as u64) }
}

#[cfg(test)]
mod tests {
    use stepccl_engine::{REASON_BYTES, RankState};

    use super::*;
    use crate::frame::Limits;
    use crate::parser::{Parser, Step};

    const LIMITS: Limits = Limits {
        flags: 10_000,
        staging_bytes: 1 << 30,
        post_bytes: Some(64),
        pair_post_bytes: None,
    };

    fn area(bytes: &'static [u8]) -> Area {
        // SAFETY:
        // - The bytes live for ever, and the tests only read them.
        unsafe { Area::new(bytes.as_ptr().cast_mut(), bytes.len() as u64) }
    }

    /// Flush into a buffer through sends of at most `most` bytes; every other one is refused.
    fn drain(outbox: &mut Outbox, most: usize) -> Vec<u8> {
        let (mut out, mut turn) = (Vec::new(), 0);
        loop {
            let flushed = outbox.flush(1 << 20, &mut |area, _| {
                turn += 1;
                if turn % 2 == 0 {
                    return Err(Errno::EAGAIN);
                }
                let count = (area.bytes() as usize).min(most);
                // SAFETY:
                // - The area is a slice of the outbox or of a test, and is read at once.
                let slice = unsafe { std::slice::from_raw_parts(area.base(), count) };
                out.extend_from_slice(slice);
                Ok(count)
            });
            match flushed.unwrap() {
                Flushed::All => return out,
                Flushed::Some => assert!(outbox.blocked || turn > 0),
            }
        }
    }

    fn frames(mut stream: &[u8]) -> Vec<(Frame, Vec<u8>)> {
        let (mut parser, mut found) = (Parser::new(LIMITS), Vec::<(Frame, Vec<u8>)>::new());
        loop {
            match parser.step(&mut stream).unwrap() {
                Step::More => return found,
                Step::Frame(frame) => found.push((frame, Vec::new())),
                Step::Payload(bytes) => found.last_mut().unwrap().1.extend(bytes),
            }
        }
    }

    #[test]
    fn small_frames_pass_payloads_and_flags_pass_all() {
        static PAYLOAD: [u8; 300_000] = [7; 300_000];
        let mut outbox = Outbox::default();
        assert!(outbox.answer(3, area(&PAYLOAD), 1));
        assert!(!outbox.answer(4, area(&PAYLOAD[..5]), 1), "more than a peer may ask for");
        outbox.frame(Frame::State(RankState::Closed));
        outbox.flag(1, 2);
        outbox.post(false, 9, &[5; 20]);
        outbox.reason(&Reason::new("enough"));
        let sent = frames(&drain(&mut outbox, 1000));
        let kinds: Vec<_> = sent.iter().map(|(frame, payload)| (*frame, payload.len())).collect();
        assert_eq!(
            kinds,
            [
                (Frame::Flag { flag: 1, value: 2 }, 0),
                (Frame::Post { pair: false, number: 9, bytes: 4 }, 20),
                (Frame::Reason, REASON_BYTES),
                (Frame::State(RankState::Closed), 0),
                (Frame::Data { id: 3, bytes: CHUNK_BYTES }, 131_072),
                (Frame::Data { id: 3, bytes: CHUNK_BYTES }, 131_072),
                (Frame::Data { id: 3, bytes: 37_856 }, 37_856),
                (Frame::Data { id: 4, bytes: 5 }, 5),
            ]
        );
        assert!(sent[4..].iter().flat_map(|(_, payload)| payload).all(|byte| *byte == 7));
        assert!(outbox.is_empty());
    }

    #[test]
    fn withdrawn_memory_is_not_sent_and_the_stream_stays_in_step() {
        static PAYLOAD: [u8; 200_000] = [9; 200_000];
        let mut outbox = Outbox::default();
        outbox.write(1, 50, area(&PAYLOAD));
        let mut first = Vec::new();
        let flushed = outbox.flush(500, &mut |area, _| {
            let count = (area.bytes() as usize).min(400);
            // SAFETY:
            // - The area is a slice of the outbox or of the payload, and is read at once.
            first.extend_from_slice(unsafe { std::slice::from_raw_parts(area.base(), count) });
            Ok(count)
        });
        assert_eq!(flushed, Ok(Flushed::Some));
        outbox.withdraw();
        outbox.frame(Frame::Bye);
        first.extend(drain(&mut outbox, 3000));
        let sent = frames(&first);
        assert_eq!(sent[0].0, Frame::Write { id: 1, offset: 50, bytes: CHUNK_BYTES });
        assert_eq!(sent[1].0, Frame::Bye);
        assert_eq!(sent.len(), 2);
        let nines = sent[0].1.iter().filter(|byte| **byte == 9).count();
        assert!(nines < 1000 && sent[0].1[nines..].iter().all(|byte| *byte == 0), "{nines}");
    }

    #[test]
    fn flags_that_nobody_takes_stay_bounded_and_the_last_value_wins() {
        let mut outbox = Outbox::default();
        for value in 1..=100_000 {
            outbox.flag((value % 7) as u32, value);
        }
        let sent = frames(&drain(&mut outbox, 10_000));
        assert!(sent.len() <= MANY_FLAGS + 7, "{}", sent.len());
        let mut last = [0; 7];
        for (frame, _) in sent {
            let Frame::Flag { flag, value } = frame else { panic!("{frame:?}") };
            assert!(last[flag as usize] < value, "a flag shrank");
            last[flag as usize] = value;
        }
        assert_eq!(last.iter().max(), Some(&100_000));
        assert_eq!(last.iter().min(), Some(&99_994));
    }
}
