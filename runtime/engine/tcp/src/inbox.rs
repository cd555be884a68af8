//! What comes from one peer, and what is done with it.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use nix::errno::Errno;
use stepccl_engine::{REASON_BYTES, RankState, Reason};

use crate::area::Area;
use crate::frame::{Frame, FrameError, Limits, WORD_BYTES};
use crate::parser::{Parser, Step};
use crate::peer::{Peer, reason};
use crate::shared::Shared;
use crate::socket;
use crate::transfers::MAX_TRANSFERS;

/// Payloads with at least so many bytes to come are received where they belong, without a copy.
const DIRECT_BYTES: u64 = 8 << 10;
/// Bytes taken of one peer before the others have their turn.
const TURN_BYTES: usize = 1 << 20;

/// Where the payload goes that is under way.
#[derive(Clone, Copy, Debug)]
enum Body {
    None,
    Fetch {
        id: u32,
    },
    /// Into own staging; acknowledged when `left` is 0.
    Write {
        id: u32,
        bytes: u64,
        offset: u64,
        left: u64,
    },
    Will {
        offset: u64,
    },
    /// Onto a shelf: the words first, which are kept until the data is there.
    Post {
        pair: bool,
        number: u64,
        at: usize,
        bytes: usize,
        words: [u8; WORDS],
    },
    /// Kept until it is there as a whole.
    Reason {
        at: usize,
        bytes: [u8; REASON_BYTES],
    },
}

const WORDS: usize = WORD_BYTES as usize;

/// The receiving side of one connection.
#[derive(Debug)]
pub(crate) struct Inbox {
    parser: Parser,
    body: Body,
    greeted: bool,
    /// The peer has heard this rank's goodbye.
    pub(crate) bye_heard: bool,
    /// The peer has said goodbye.
    bye: bool,
}

/// Why a connection is of no more use.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("the process ended or closed it")]
    Closed,
    #[error("{}", reason(*.0))]
    System(Errno),
    #[error("it sent {0}")]
    Frame(#[from] FrameError),
    #[error("it sent {0}")]
    Lie(String),
}

impl Inbox {
    pub(crate) const fn new(limits: Limits) -> Self {
        Self {
            parser: Parser::new(limits),
            body: Body::None,
            greeted: false,
            bye_heard: false,
            bye: false,
        }
    }

    /// Take what is there, through `buffer`. Whether anything came that somebody may wait for.
    pub(crate) fn receive(&mut self, shared: &Shared, peer: &Peer, buffer: &mut [u8]) -> bool {
        match self.take(shared, peer, buffer) {
            Ok(came) => came,
            Err(fault) => {
                shared.give_up(peer, &fault.to_string(), !matches!(fault, Fault::Closed));
                true
            }
        }
    }

    fn take(&mut self, shared: &Shared, peer: &Peer, buffer: &mut [u8]) -> Result<bool, Fault> {
        let mut turn = 0;
        while turn < TURN_BYTES {
            let (asked, got) = if self.parser.payload_left() >= DIRECT_BYTES {
                match self.direct(shared, peer)? {
                    Some(pair) => pair,
                    None => self.buffered(shared, peer, buffer)?,
                }
            } else {
                self.buffered(shared, peer, buffer)?
            };
            turn += got;
            if got < asked {
                break;
            }
        }
        Ok(turn > 0)
    }

    /// Receive a payload where it belongs; bytes asked for and received. None where it belongs
    /// nowhere.
    fn direct(&mut self, shared: &Shared, peer: &Peer) -> Result<Option<(usize, usize)>, Fault> {
        // The lock is held while bytes go to a caller's memory: who cancels waits for it.
        let mut transfers = peer.transfers();
        let place = match self.body {
            Body::Fetch { id } => transfers.place(id),
            Body::Write { offset, left, .. } => shared.staging.part(offset, left),
            _ => None,
        };
        let Some(place) = place.filter(|place| place.bytes() > 0) else { return Ok(None) };
        let asked = usize::try_from(place.bytes()).unwrap_or(usize::MAX);
        let got = received(socket::receive(peer.stream.as_fd(), place))?;
        self.parser.took(got as u64);
        match &mut self.body {
            Body::Fetch { id } => {
                if let Some(job) = transfers.arrived(*id, got as u64) {
                    shared.end(job, None);
                }
            }
            Body::Write { offset, left, .. } => {
                *offset += got as u64;
                *left -= got as u64;
            }
            _ => {}
        }
        drop(transfers);
        self.acknowledge(shared, peer);
        Ok(Some((asked, got)))
    }

    fn buffered(
        &mut self,
        shared: &Shared,
        peer: &Peer,
        buffer: &mut [u8],
    ) -> Result<(usize, usize), Fault> {
        // SAFETY:
        // - The area is used for this call only, and the buffer is not touched meanwhile.
        let place = unsafe { Area::new(buffer.as_mut_ptr(), buffer.len() as u64) };
        let got = received(socket::receive(peer.stream.as_fd(), place))?;
        let mut input = &buffer[..got];
        loop {
            match self.parser.step(&mut input)? {
                Step::More => return Ok((buffer.len(), got)),
                Step::Frame(frame) => self.frame(shared, peer, frame)?,
                Step::Payload(bytes) => self.payload(shared, peer, bytes)?,
            }
        }
    }

    fn payload(&mut self, shared: &Shared, peer: &Peer, bytes: &[u8]) -> Result<(), Fault> {
        match &mut self.body {
            Body::Fetch { id } => {
                let mut transfers = peer.transfers();
                if let Some(place) = transfers.place(*id) {
                    place.write(bytes);
                    if let Some(job) = transfers.arrived(*id, bytes.len() as u64) {
                        shared.end(job, None);
                    }
                }
            }
            Body::Write { offset, left, .. } => {
                if let Some(place) = shared.staging.part(*offset, bytes.len() as u64) {
                    place.write(bytes);
                }
                *offset += bytes.len() as u64;
                *left -= bytes.len() as u64;
            }
            Body::Will { offset } => {
                if let Some(will) = &mut *peer.will() {
                    let start = *offset as usize;
                    if let Some(place) = will.get_mut(start..start + bytes.len()) {
                        place.copy_from_slice(bytes);
                    }
                }
                *offset += bytes.len() as u64;
            }
            Body::Post { .. } => self.post(peer, bytes),
            Body::Reason { .. } => self.reason(peer, bytes)?,
            Body::None => {}
        }
        self.acknowledge(shared, peer);
        Ok(())
    }

    /// More of the words of a peer that fails.
    fn reason(&mut self, peer: &Peer, payload: &[u8]) -> Result<(), Fault> {
        let Body::Reason { at, bytes } = &mut self.body else { return Ok(()) };
        if let Some(place) = bytes.get_mut(*at..*at + payload.len()) {
            place.copy_from_slice(payload);
        }
        *at += payload.len();
        if *at < REASON_BYTES {
            return Ok(());
        }
        let reason = Reason::from_bytes(*bytes);
        self.body = Body::None;
        if peer.explains(reason) {
            return Ok(());
        }
        Err(Fault::Lie("a reason of a failure that it had told before".to_owned()))
    }

    /// More of a post.
    fn post(&mut self, peer: &Peer, mut payload: &[u8]) {
        let Body::Post { pair, number, at, bytes, words } = &mut self.body else { return };
        let shelf = if *pair { &peer.pair } else { &peer.collective };
        if *at < WORDS {
            let (head, rest) = payload.split_at(payload.len().min(WORDS - *at));
            words[*at..*at + head.len()].copy_from_slice(head);
            *at += head.len();
            payload = rest;
        }
        if *at >= WORDS {
            if let Some(place) = shelf.part(*number, *at - WORDS, payload.len()) {
                place.write(payload);
            }
            *at += payload.len();
            if *at == WORDS + *bytes {
                let (words, _) = words.as_chunks::<8>();
                shelf.put_up(*number, [u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])]);
                self.body = Body::None;
            }
        }
    }

    /// Tell the peer of a write that is in place.
    fn acknowledge(&mut self, shared: &Shared, peer: &Peer) {
        if let Body::Write { id, bytes, left: 0, .. } = self.body {
            self.body = Body::None;
            shared.send(peer, |outbox| outbox.frame(Frame::Ack { id, bytes }));
        }
    }

    fn frame(&mut self, shared: &Shared, peer: &Peer, frame: Frame) -> Result<(), Fault> {
        if !self.greeted {
            self.greeted = true;
            return greeting(shared, peer, frame);
        }
        match frame {
            Frame::Hello { .. } => return Err(Fault::Lie("a second hello".to_owned())),
            Frame::Flag { flag, value } => self.flag(shared, peer, flag, value)?,
            Frame::Post { pair, number, bytes } => {
                let shelf = if pair { &peer.pair } else { &peer.collective };
                if !shelf.expects(number) {
                    return Err(Fault::Lie(format!("post {number} after a later one")));
                }
                // The parser has compared the length with the board's.
                let bytes = bytes as usize;
                self.body = Body::Post { pair, number, at: 0, bytes, words: [0; WORDS] };
            }
            Frame::Read { id, offset, bytes } => {
                // The parser has compared the range with the staging.
                if let Some(memory) = shared.staging.part(offset, bytes) {
                    let mut bounded = true;
                    shared.send(peer, |outbox| {
                        bounded = outbox.answer(id, memory, MAX_TRANSFERS);
                    });
                    if !bounded {
                        let what = format!("more than {MAX_TRANSFERS} reads at once");
                        return Err(Fault::Lie(what));
                    }
                }
            }
            Frame::Data { id, bytes } => {
                peer.transfers().announce(id, bytes).map_err(Fault::Lie)?;
                self.body = Body::Fetch { id };
            }
            Frame::Write { id, offset, bytes } => {
                self.body = Body::Write { id, bytes, offset, left: bytes };
            }
            Frame::Ack { id, bytes } => {
                let ended = peer.transfers().acknowledge(id, bytes).map_err(Fault::Lie)?;
                if let Some(job) = ended {
                    shared.end(job, None);
                }
            }
            Frame::Reason => self.body = Body::Reason { at: 0, bytes: [0; REASON_BYTES] },
            Frame::State(state) => peer.says(state),
            Frame::Will { offset, .. } => {
                if self.bye || peer.state() == RankState::Running {
                    return Err(Fault::Lie("a will while it does not leave".to_owned()));
                }
                let bytes = shared.limits.staging_bytes as usize;
                peer.will().get_or_insert_with(|| vec![0; bytes].into());
                self.body = Body::Will { offset };
            }
            Frame::Bye => {
                self.bye = true;
                shared.send(peer, |outbox| {
                    outbox.farewell = true;
                    outbox.frame(Frame::ByeHeard);
                });
            }
            Frame::ByeHeard => self.bye_heard = true,
        }
        Ok(())
    }

    fn flag(&self, shared: &Shared, peer: &Peer, flag: u32, value: u64) -> Result<(), Fault> {
        // The parser has compared the flag with their number.
        let Some(word) = shared.flag(peer.index as usize, flag) else { return Ok(()) };
        let before = word.load(Ordering::Relaxed);
        if value < before {
            return Err(Fault::Lie(format!("flag {flag} with {value} after {before}")));
        }
        // What the peer wrote here before, and answers that came before, are visible with it.
        word.store(value, Ordering::Release);
        Ok(())
    }
}

/// Compare the peer's first frame with what this rank was started with.
fn greeting(shared: &Shared, peer: &Peer, frame: Frame) -> Result<(), Fault> {
    let due = match shared.hello() {
        Frame::Hello { version, flags, ranks, staging_bytes, .. } => {
            Frame::Hello { version, flags, rank: peer.rank, ranks, staging_bytes }
        }
        other => other,
    };
    if frame == due {
        return Ok(());
    }
    Err(Fault::Lie(format!(
        "{frame:?} where {due:?} is due; start all ranks with the same version and settings"
    )))
}

/// Bytes received; 0 where there are none now.
fn received(result: Result<usize, Errno>) -> Result<usize, Fault> {
    match result {
        Ok(0) | Err(Errno::ECONNRESET | Errno::EPIPE) => Err(Fault::Closed),
        Ok(count) => Ok(count),
        Err(Errno::EAGAIN | Errno::EINTR) => Ok(0),
        Err(error) => Err(Fault::System(error)),
    }
}
