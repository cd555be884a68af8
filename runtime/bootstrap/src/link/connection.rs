//! A stream that speaks frames and never blocks.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::socket::{MsgFlags, recv, send};

use super::frame::{Frame, FrameError, FrameReader};
use super::stream::Stream;

/// A stream with the frame being read and the bytes still to send.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    reader: FrameReader,
    out: Vec<u8>,
}

/// Why a connection is of no more use.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Ended {
    #[error("it closed the connection")]
    Closed,
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("{0}")]
    System(Errno),
}

impl Connection {
    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream, reader: FrameReader::default(), out: Vec::new() }
    }

    /// Queue `frame` and send what can be sent.
    pub(crate) fn send(&mut self, frame: &Frame) -> Result<(), Ended> {
        frame.encode(&mut self.out);
        self.flush()
    }

    /// Send what can be sent.
    pub(crate) fn flush(&mut self) -> Result<(), Ended> {
        while !self.out.is_empty() {
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
            match send(self.stream.as_fd().as_raw_fd(), &self.out, flags) {
                Ok(count) => drop(self.out.drain(..count)),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EPIPE | Errno::ECONNRESET) => return Err(Ended::Closed),
                Err(error) => return Err(Ended::System(error)),
            }
        }
        Ok(())
    }

    /// Whether bytes wait to be sent.
    pub(crate) const fn unsent(&self) -> bool {
        !self.out.is_empty()
    }

    /// What to watch for.
    pub(crate) fn events(&self) -> PollFlags {
        if self.unsent() { PollFlags::POLLIN | PollFlags::POLLOUT } else { PollFlags::POLLIN }
    }

    /// The next frame, if all of it is there.
    pub(crate) fn receive(&mut self) -> Result<Option<Frame>, Ended> {
        let mut buffer = [0; 1032];
        loop {
            let wanted = self.reader.wanted()?.min(buffer.len());
            let flags = MsgFlags::MSG_DONTWAIT;
            match recv(self.stream.as_fd().as_raw_fd(), &mut buffer[..wanted], flags) {
                Ok(0) | Err(Errno::ECONNRESET) => return Err(Ended::Closed),
                Ok(count) => {
                    if let Some(frame) = self.reader.push(&buffer[..count])? {
                        return Ok(Some(frame));
                    }
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(None),
                Err(error) => return Err(Ended::System(error)),
            }
        }
    }

    pub(crate) fn into_stream(self) -> Stream {
        self.stream
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
