//! One round of messages among linked ranks.
//!
//! All sends and receives run at once over `poll`: no order of the ranks can block another.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};

use super::dial::timeout;
use super::passing::{receive_with, send_with};
use crate::wire::Reader;
use crate::{BootstrapError, Link, MAX_MESSAGE_BYTES};

const HEADER_BYTES: usize = 12;

/// What this rank sends to all.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outgoing<'a> {
    Bytes(&'a [u8]),
    Descriptor(BorrowedFd<'a>),
}

/// What one rank sent.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) bytes: Vec<u8>,
    pub(crate) descriptor: Option<OwnedFd>,
}

/// What stands before each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    kind: u32,
    sequence: u32,
    bytes: u32,
}

const KIND_BYTES: u32 = 1;
const KIND_DESCRIPTOR: u32 = 2;

impl Header {
    fn encode(self) -> Vec<u8> {
        [self.kind, self.sequence, self.bytes].iter().flat_map(|n| n.to_le_bytes()).collect()
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        Some(Self { kind: reader.u32()?, sequence: reader.u32()?, bytes: reader.u32()? })
    }

    /// Length of the message, or why this is not the message that is due.
    fn check(self, kind: u32, sequence: u32) -> Result<usize, String> {
        let name = |kind| match kind {
            KIND_BYTES => "a message".to_owned(),
            KIND_DESCRIPTOR => "a descriptor".to_owned(),
            other => format!("kind {other}"),
        };
        if (self.kind, self.sequence) != (kind, sequence) {
            return Err(format!(
                "it sent {} as exchange {}, this rank is at exchange {sequence} and expects {}; all \
                 ranks must call the same exchanges in the same order",
                name(self.kind),
                self.sequence,
                name(kind),
            ));
        }
        let most = if kind == KIND_BYTES { MAX_MESSAGE_BYTES } else { 0 };
        let bytes = self.bytes as usize;
        if bytes > most {
            return Err(format!("a message of {bytes} bytes; at most {most} are possible"));
        }
        Ok(bytes)
    }
}

/// The state of one link.
struct Transfer<'a> {
    link: &'a Link,
    sent: usize,
    inbox: Vec<u8>,
    /// Length of the whole message with its header, once known.
    wanted: Option<usize>,
    descriptors: Vec<OwnedFd>,
}

/// Why a link failed.
enum Fault {
    Lost,
    Protocol(String),
    System(&'static str, Errno),
}

struct Round<'a> {
    kind: u32,
    sequence: u32,
    message: Vec<u8>,
    descriptor: Option<BorrowedFd<'a>>,
}

impl Transfer<'_> {
    fn receiving(&self) -> bool {
        self.wanted.is_none_or(|wanted| self.inbox.len() < wanted)
    }

    fn events(&self, round: &Round<'_>) -> PollFlags {
        let mut events = PollFlags::empty();
        events.set(PollFlags::POLLIN, self.receiving());
        events.set(PollFlags::POLLOUT, self.sent < round.message.len());
        events
    }

    fn send(&mut self, round: &Round<'_>) -> Result<(), Fault> {
        while self.sent < round.message.len() {
            let fd = if self.sent == 0 { round.descriptor } else { None };
            match send_with(self.link.stream.as_fd(), &round.message[self.sent..], fd) {
                Ok(count) => self.sent += count,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EPIPE | Errno::ECONNRESET) => return Err(Fault::Lost),
                Err(error) => return Err(Fault::System("sendmsg to a rank", error)),
            }
        }
        Ok(())
    }

    /// Reads this message and no byte of the next one.
    fn receive(&mut self, round: &Round<'_>) -> Result<(), Fault> {
        let mut buffer = [0; 4096];
        while self.receiving() {
            let wanted = self.wanted.unwrap_or(HEADER_BYTES) - self.inbox.len();
            let buffer = &mut buffer[..wanted.min(4096)];
            match receive_with(self.link.stream.as_fd(), buffer, &mut self.descriptors) {
                Ok(0) | Err(Errno::ECONNRESET) => return Err(Fault::Lost),
                Ok(count) => self.inbox.extend_from_slice(&buffer[..count]),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(()),
                Err(error) => return Err(Fault::System("recvmsg from a rank", error)),
            }
            let due = usize::from(round.descriptor.is_some());
            if self.descriptors.len() > due {
                let count = self.descriptors.len();
                return Err(Fault::Protocol(format!(
                    "it sent {count} descriptors, {due} were due"
                )));
            }
            if self.wanted.is_none()
                && let Some(header) = Header::parse(&self.inbox)
            {
                let bytes = header.check(round.kind, round.sequence).map_err(Fault::Protocol)?;
                if self.descriptors.len() != due {
                    return Err(Fault::Protocol("it sent no descriptor, 1 was due".to_owned()));
                }
                self.wanted = Some(HEADER_BYTES + bytes);
            }
        }
        Ok(())
    }
}

/// Send `outgoing` over every link that can carry it and receive what each peer sends.
///
/// # Errors
///
/// A peer ended, sent something else, or did not send before `deadline`. The streams are out of
/// step then.
pub(crate) fn exchange(
    name: &str,
    rank: u32,
    links: &[Option<Link>],
    outgoing: Outgoing<'_>,
    sequence: u32,
    deadline: Instant,
) -> Result<Vec<Option<Received>>, BootstrapError> {
    let started = Instant::now();
    let round = Round::new(outgoing, sequence);
    let mut transfers: Vec<_> = links
        .iter()
        .flatten()
        .filter(|link| round.descriptor.is_none() || !link.stream.is_tcp())
        .map(|link| Transfer {
            link,
            sent: 0,
            inbox: Vec::new(),
            wanted: None,
            descriptors: Vec::new(),
        })
        .collect();
    loop {
        for transfer in &mut transfers {
            // Send first, so that a peer at another exchange learns of it too; then receive even
            // if that failed, because what a peer sent before it ended says more.
            let sent = transfer.send(&round);
            transfer
                .receive(&round)
                .and(sent)
                .map_err(|fault| fault.error(name, rank, transfer.link))?;
        }
        let open: Vec<_> = transfers.iter().filter(|t| !t.events(&round).is_empty()).collect();
        if open.is_empty() {
            break;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(BootstrapError::Timeout {
                name: name.to_owned(),
                rank,
                during: format!("exchanging with the other ranks (exchange {sequence})"),
                waited: Duration::from_millis(started.elapsed().as_millis() as u64),
                missing: open.iter().map(|t| t.link.rank).collect(),
            });
        }
        let mut fds: Vec<_> =
            open.iter().map(|t| PollFd::new(t.link.stream.as_fd(), t.events(&round))).collect();
        match poll(&mut fds, timeout(left)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(BootstrapError::system("poll", error)),
        }
    }
    let mut received: Vec<Option<Received>> = links.iter().map(|_| None).collect();
    for mut transfer in transfers {
        received[transfer.link.rank as usize] = Some(Received {
            bytes: transfer.inbox.split_off(HEADER_BYTES),
            descriptor: transfer.descriptors.pop(),
        });
    }
    Ok(received)
}

impl<'a> Round<'a> {
    fn new(outgoing: Outgoing<'a>, sequence: u32) -> Self {
        let (kind, bytes, descriptor) = match outgoing {
            Outgoing::Bytes(bytes) => (KIND_BYTES, bytes, None),
            Outgoing::Descriptor(fd) => (KIND_DESCRIPTOR, &[][..], Some(fd)),
        };
        // At most MAX_MESSAGE_BYTES, which the caller has checked.
        let mut message = Header { kind, sequence, bytes: bytes.len() as u32 }.encode();
        message.extend_from_slice(bytes);
        Self { kind, sequence, message, descriptor }
    }
}

impl Fault {
    fn error(self, name: &str, rank: u32, link: &Link) -> BootstrapError {
        let name = name.to_owned();
        match self {
            Self::Lost => BootstrapError::PeerLost {
                name,
                rank,
                peer: link.rank,
                pid: link.pid,
                during: "exchanging with it".to_owned(),
            },
            Self::Protocol(detail) => {
                BootstrapError::Protocol { name, rank, peer: link.rank, detail }
            }
            Self::System(call, error) => BootstrapError::system(call, error),
        }
    }
}
