//! Bytes between a socket and memory that is named by pointer, and a connection's options.

use std::net::TcpStream;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{setsockopt, sockopt};

use crate::TcpError;
use crate::area::Area;

/// Send some of `area`; `more` says that other bytes follow at once. Does not block.
///
/// # Errors
///
/// What the system says; `EAGAIN` where the socket is full.
pub(crate) fn send(socket: BorrowedFd<'_>, area: Area, more: bool) -> Result<usize, Errno> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | if more { libc::MSG_MORE } else { 0 };
    let length = usize::try_from(area.bytes()).unwrap_or(usize::MAX);
    // SAFETY:
    // - `Area::new` was promised that the bytes are valid for reads while the engine uses them;
    //   the kernel only reads them, and only during the call.
    let sent = unsafe { libc::send(socket.as_raw_fd(), area.base().cast(), length, flags) };
    Errno::result(sent).map(|count| count.unsigned_abs())
}

/// Receive some bytes into `area`, which is not empty. Does not block; 0 says that the other side
/// closed.
///
/// # Errors
///
/// What the system says; `EAGAIN` where nothing is there.
pub(crate) fn receive(socket: BorrowedFd<'_>, area: Area) -> Result<usize, Errno> {
    let length = usize::try_from(area.bytes()).unwrap_or(usize::MAX);
    // SAFETY:
    // - `Area::new` was promised that the bytes are valid for writes while the engine uses them;
    //   the kernel writes no more than `length`, and only during the call.
    let got =
        unsafe { libc::recv(socket.as_raw_fd(), area.base().cast(), length, libc::MSG_DONTWAIT) };
    Errno::result(got).map(|count| count.unsigned_abs())
}

/// Send small frames at once, and notice within `timeout` that the other side's kernel does not
/// answer any more, whether bytes are under way or not.
///
/// # Errors
///
/// [`TcpError::System`].
pub(crate) fn configure(stream: &TcpStream, timeout: Duration) -> Result<(), TcpError> {
    let fail = |call| move |error: Errno| TcpError::system(call, error);
    stream.set_nodelay(true).map_err(|e| TcpError::system("set TCP_NODELAY", e))?;
    stream.set_nonblocking(true).map_err(|e| TcpError::system("set O_NONBLOCK", e))?;
    let millis = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
    setsockopt(stream, sockopt::TcpUserTimeout, &millis).map_err(fail("set TCP_USER_TIMEOUT"))?;
    setsockopt(stream, sockopt::KeepAlive, &true).map_err(fail("set SO_KEEPALIVE"))?;
    // Four probes in the time: one that is lost on the way ends nothing.
    let probe = u32::try_from(timeout.as_secs() / 4).unwrap_or(u32::MAX).clamp(1, 60);
    setsockopt(stream, sockopt::TcpKeepIdle, &probe).map_err(fail("set TCP_KEEPIDLE"))?;
    setsockopt(stream, sockopt::TcpKeepInterval, &probe).map_err(fail("set TCP_KEEPINTVL"))?;
    setsockopt(stream, sockopt::TcpKeepCount, &4).map_err(fail("set TCP_KEEPCNT"))
}
