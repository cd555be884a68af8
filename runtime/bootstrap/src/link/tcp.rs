//! The TCP sockets on which a rank is reached by other nodes.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, connect, getsockopt, setsockopt, socket,
    sockopt,
};

use crate::BootstrapError;

/// Bytes under way and idle links: the other side's host must answer within this, in milliseconds.
const SILENCE_MILLIS: u32 = 20_000;

/// Sockets that listen, one an address, so that nobody is reached by interfaces that the user left
/// out. They go when the ranks are linked.
#[derive(Debug)]
pub(crate) struct TcpListeners(Vec<TcpListener>);

impl TcpListeners {
    /// Listen on each of `addresses` that the system lets us have, on a port it chooses.
    pub(crate) fn bind(addresses: &[IpAddr]) -> Result<Self, BootstrapError> {
        let mut listeners = Vec::with_capacity(addresses.len());
        let mut refused = None;
        for address in addresses {
            match TcpListener::bind((*address, 0)) {
                Ok(listener) => {
                    listener
                        .set_nonblocking(true)
                        .map_err(|e| BootstrapError::system("set O_NONBLOCK", e))?;
                    listeners.push(listener);
                }
                // An address may be there and not be usable yet, or any more.
                Err(error) => refused = Some(error),
            }
        }
        match refused {
            Some(error) if listeners.is_empty() => Err(BootstrapError::system("listen", error)),
            _ => Ok(Self(listeners)),
        }
    }

    /// Where they listen.
    pub(crate) fn addresses(&self) -> Result<Vec<SocketAddr>, BootstrapError> {
        let address = |listener: &TcpListener| listener.local_addr();
        let all: std::io::Result<Vec<_>> = self.0.iter().map(address).collect();
        all.map_err(|e| BootstrapError::system("getsockname", e))
    }

    pub(crate) fn sockets(&self) -> &[TcpListener] {
        &self.0
    }

    /// The next connection, if one waits.
    pub(crate) fn accept(&self) -> Result<Option<(TcpStream, SocketAddr)>, BootstrapError> {
        use std::io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
        for listener in &self.0 {
            match listener.accept() {
                Ok((stream, from)) => {
                    watch_over(&stream)?;
                    return Ok(Some((stream, from)));
                }
                Err(e) if matches!(e.kind(), WouldBlock | Interrupted | ConnectionAborted) => {}
                Err(error) => return Err(BootstrapError::system("accept", error)),
            }
        }
        Ok(None)
    }
}

/// Begin to connect; whether it worked is known when the socket can be written.
pub(crate) fn begin(address: SocketAddr) -> Result<TcpStream, Errno> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd: OwnedFd = socket(family, SockType::Stream, flags, None)?;
    match connect(fd.as_raw_fd(), &SockaddrStorage::from(address)) {
        Ok(()) | Err(Errno::EINPROGRESS | Errno::EINTR) => Ok(TcpStream::from(fd)),
        Err(error) => Err(error),
    }
}

/// What came of a connect that has ended.
pub(crate) fn outcome(stream: &TcpStream) -> Result<(), Errno> {
    match getsockopt(stream, sockopt::SocketError)? {
        0 => watch_over(stream).map_err(|_| Errno::EINVAL),
        error => Err(Errno::from_raw(error)),
    }
}

/// Small messages go at once, and a host that does not answer is noticed.
fn watch_over(stream: &TcpStream) -> Result<(), BootstrapError> {
    let fail = |e: Errno| BootstrapError::system("setsockopt of a link", e);
    stream.set_nodelay(true).map_err(|e| BootstrapError::system("set TCP_NODELAY", e))?;
    setsockopt(stream, sockopt::TcpUserTimeout, &SILENCE_MILLIS).map_err(fail)?;
    setsockopt(stream, sockopt::KeepAlive, &true).map_err(fail)?;
    setsockopt(stream, sockopt::TcpKeepIdle, &5).map_err(fail)?;
    setsockopt(stream, sockopt::TcpKeepInterval, &5).map_err(fail)
}
