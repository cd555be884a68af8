//! The abstract Unix socket on which a rank is reached.

use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, bind, connect, socket};

use crate::BootstrapError;

/// Random part of a socket's name.
pub(crate) type SocketId = [u8; 16];

/// A listening socket with a name nobody can guess and no file anywhere.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: UnixListener,
    id: SocketId,
}

/// What came of an attempt to connect.
#[derive(Debug)]
pub(crate) enum Dialed {
    Connected(UnixStream),
    /// The queue of the listener is full; try again.
    Busy,
    /// Nobody listens there: the rank ended.
    Gone,
}

fn name(id: &SocketId) -> Vec<u8> {
    let mut name = b"stepccl-".to_vec();
    for byte in id {
        name.extend_from_slice(format!("{byte:02x}").as_bytes());
    }
    name
}

impl Listener {
    pub(crate) fn bind() -> Result<Self, BootstrapError> {
        let mut id = SocketId::default();
        getrandom::fill(&mut id).map_err(|e| BootstrapError::system("getrandom", e))?;
        let fail = |e| BootstrapError::system("listen on an abstract Unix socket", e);
        let address = SocketAddr::from_abstract_name(name(&id)).map_err(fail)?;
        let socket = UnixListener::bind_addr(&address).map_err(fail)?;
        socket.set_nonblocking(true).map_err(fail)?;
        Ok(Self { socket, id })
    }

    pub(crate) const fn id(&self) -> &SocketId {
        &self.id
    }

    pub(crate) const fn socket(&self) -> &UnixListener {
        &self.socket
    }

    /// The next connection, if one waits.
    pub(crate) fn accept(&self) -> Result<Option<UnixStream>, BootstrapError> {
        use std::io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
        match self.socket.accept() {
            Ok((stream, _)) => Ok(Some(stream)),
            Err(e) if matches!(e.kind(), WouldBlock | Interrupted | ConnectionAborted) => Ok(None),
            Err(error) => Err(BootstrapError::system("accept", error)),
        }
    }
}

/// Connect to a rank without waiting for it to accept.
pub(crate) fn dial(id: &SocketId) -> Result<Dialed, BootstrapError> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Unix, SockType::Stream, flags, None)
        .map_err(|e| BootstrapError::system("socket", e))?;
    let address = UnixAddr::new_abstract(&name(id))
        .map_err(|e| BootstrapError::system("name of an abstract Unix socket", e))?;
    match connect(fd.as_raw_fd(), &address) {
        Ok(()) => {
            let stream = UnixStream::from(fd);
            stream
                .set_nonblocking(false)
                .map_err(|e| BootstrapError::system("clear O_NONBLOCK", e))?;
            Ok(Dialed::Connected(stream))
        }
        Err(Errno::EAGAIN | Errno::EINTR) => Ok(Dialed::Busy),
        Err(Errno::ECONNREFUSED) => Ok(Dialed::Gone),
        Err(error) => Err(BootstrapError::system("connect to an abstract Unix socket", error)),
    }
}

/// Whether a rank still listens. Takes its name for a moment where it does not: unlike a
/// connection, that disturbs nobody.
pub(crate) fn listens(id: &SocketId) -> Result<bool, BootstrapError> {
    let fd = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)
        .map_err(|e| BootstrapError::system("socket", e))?;
    let address = UnixAddr::new_abstract(&name(id))
        .map_err(|e| BootstrapError::system("name of an abstract Unix socket", e))?;
    match bind(fd.as_raw_fd(), &address) {
        Ok(()) => Ok(false),
        Err(Errno::EADDRINUSE) => Ok(true),
        Err(error) => Err(BootstrapError::system("bind an abstract Unix socket", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_seen_until_it_is_dropped() {
        let listener = Listener::bind().unwrap();
        let id = *listener.id();
        assert!(listens(&id).unwrap());
        assert!(listener.accept().unwrap().is_none());
        assert!(matches!(dial(&id).unwrap(), Dialed::Connected(_)));
        assert!(listener.accept().unwrap().is_some());
        drop(listener);
        assert!(!listens(&id).unwrap());
        assert!(matches!(dial(&id).unwrap(), Dialed::Gone));
    }

    #[test]
    fn a_full_queue_does_not_block() {
        let listener = Listener::bind().unwrap();
        // The queue is bounded by net.core.somaxconn, the number of descriptors by the process.
        let mut held = Vec::new();
        while held.len() < 500 {
            match dial(listener.id()).unwrap() {
                Dialed::Connected(stream) => held.push(stream),
                Dialed::Busy => break,
                Dialed::Gone => panic!("the listener is there"),
            }
        }
        assert!(!held.is_empty());
    }
}
