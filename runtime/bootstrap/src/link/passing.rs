//! Descriptors over a Unix socket. The only unsafe code of the crate.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

/// Most descriptors the kernel puts into one message (`SCM_MAX_FD`). With room for all of them a
/// message is never truncated, and none can arrive without being seen here.
const MAX_DESCRIPTORS: usize = 253;

/// Send some of `bytes`, which is not empty, and `fd` with the first of them. Does not block.
///
/// # Errors
///
/// What `sendmsg` says; then `fd` was not sent.
pub(crate) fn send_with(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fd: Option<BorrowedFd<'_>>,
) -> Result<usize, Errno> {
    let fds = fd.map(|fd| [fd.as_raw_fd()]);
    let control = fds.as_ref().map(|fds| [ControlMessage::ScmRights(fds)]);
    sendmsg::<()>(
        socket.as_raw_fd(),
        &[IoSlice::new(bytes)],
        control.as_ref().map_or(&[], |control| control.as_slice()),
        MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL,
        None,
    )
}

/// Receive some bytes into `bytes`, which is not empty, and the descriptors that came with them,
/// close-on-exec. Does not block; 0 bytes mean that the other side closed.
///
/// # Errors
///
/// What `recvmsg` says; `EMFILE` where this process can have no more descriptors.
pub(crate) fn receive_with(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    fds: &mut Vec<OwnedFd>,
) -> Result<usize, Errno> {
    let mut control = nix::cmsg_space!([std::os::fd::RawFd; MAX_DESCRIPTORS]);
    let mut slices = [IoSliceMut::new(bytes)];
    let message = recvmsg::<()>(
        socket.as_raw_fd(),
        &mut slices,
        Some(&mut control),
        MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    // There is room for all that one message can have, so the kernel cuts it only where it finds no
    // free number for a descriptor.
    for control in message.cmsgs().map_err(|_| Errno::EMFILE)? {
        if let ControlMessageOwned::ScmRights(received) = control {
            for fd in received {
                // SAFETY:
                // - The kernel made this descriptor for this process in the call above.
                // - Each is listed once, and nothing else has seen its number, so it has one owner.
                fds.push(unsafe { OwnedFd::from_raw_fd(fd) });
            }
        }
    }
    Ok(message.bytes)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use nix::fcntl::{FcntlArg, FdFlag, fcntl};

    use super::*;

    #[test]
    fn a_descriptor_arrives_with_its_bytes_and_closes_on_exec() {
        let (one, two) = UnixStream::pair().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        assert_eq!(send_with(one.as_fd(), b"abc", Some(file.as_fd())), Ok(3));
        file.write_all(b"through").unwrap();
        let (mut bytes, mut fds) = ([0; 8], Vec::new());
        assert_eq!(receive_with(two.as_fd(), &mut bytes, &mut fds), Ok(3));
        assert_eq!((&bytes[..3], fds.len()), (&b"abc"[..], 1));
        let flags = fcntl(&fds[0], FcntlArg::F_GETFD).unwrap();
        assert!(FdFlag::from_bits_truncate(flags).contains(FdFlag::FD_CLOEXEC));
        let mut same = std::fs::File::from(fds.remove(0));
        same.rewind().unwrap();
        let mut text = String::new();
        same.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
    }

    #[test]
    fn the_largest_message_is_seen_whole() {
        let (one, two) = UnixStream::pair().unwrap();
        let fds = vec![one.as_raw_fd(); MAX_DESCRIPTORS];
        let control = [ControlMessage::ScmRights(&fds)];
        let bytes = [IoSlice::new(b"x")];
        sendmsg::<()>(one.as_raw_fd(), &bytes, &control, MsgFlags::empty(), None).unwrap();
        let (mut byte, mut received) = ([0; 1], Vec::new());
        assert_eq!(receive_with(two.as_fd(), &mut byte, &mut received), Ok(1));
        assert_eq!(received.len(), MAX_DESCRIPTORS);
    }

    #[test]
    fn nothing_and_the_end_differ() {
        let (one, two) = UnixStream::pair().unwrap();
        let (mut byte, mut fds) = ([0; 1], Vec::new());
        assert_eq!(receive_with(two.as_fd(), &mut byte, &mut fds), Err(Errno::EAGAIN));
        drop(one);
        assert_eq!(receive_with(two.as_fd(), &mut byte, &mut fds), Ok(0));
        assert_eq!(send_with(two.as_fd(), b"x", None), Err(Errno::EPIPE));
    }
}
