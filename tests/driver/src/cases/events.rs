//! Eventfds and poll.

use std::os::fd::AsFd;

use dma_engine_uapi::{AttachEventfd, Enter, ioctl, ring::cq_flags};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll as wait};
use nix::sys::eventfd::{EfdFlags, EventFd};
use stepccl_device::{Device, Push, RingMemory, Word};

use super::raw;
use crate::conformance::{no_op, run};

/// What an eventfd has counted; 0 where it was not signalled.
fn count(eventfd: &EventFd) -> u64 {
    match eventfd.read() {
        Ok(count) => count,
        Err(Errno::EAGAIN) => 0,
        Err(errno) => panic!("{errno}"),
    }
}

pub(super) fn eventfd() {
    let device = Device::open().unwrap();
    let eventfd = EventFd::from_flags(EfdFlags::EFD_NONBLOCK).unwrap();
    let early = device.attach_eventfd(eventfd.as_fd(), false).unwrap_err();
    assert_eq!(early.errno(), Some(Errno::ENXIO), "no ring");
    let mut client = device.ring(8).unwrap();
    device.attach_eventfd(eventfd.as_fd(), false).unwrap();
    run(&mut client, &[no_op(1), no_op(2)]);
    assert!((1..=2).contains(&count(&eventfd)));
    assert_eq!(count(&eventfd), 0);

    // On demand: only while the client says that it waits.
    device.attach_eventfd(eventfd.as_fd(), true).unwrap();
    run(&mut client, &[no_op(1)]);
    assert_eq!(count(&eventfd), 0);
    let ring = client.memory().mapped();
    ring.store_relaxed(Word::CqFlags, cq_flags::WAITING).unwrap();
    ring.fence();
    run(&mut client, &[no_op(1)]);
    assert_eq!(count(&eventfd), 1);

    device.detach_eventfd().unwrap();
    run(&mut client, &[no_op(1)]);
    assert_eq!(count(&eventfd), 0);
    for (fd, errno) in [(999, Errno::EBADF), (0, Errno::EINVAL), (-2, Errno::EINVAL)] {
        let mut argument = AttachEventfd { size: 16, fd, ..AttachEventfd::default() };
        let refused = raw::command(device.as_fd(), ioctl::ATTACH_EVENTFD, &mut argument);
        assert_eq!(refused, Err(errno), "{fd}");
    }
    // A ring that breaks tells, too.
    device.attach_eventfd(eventfd.as_fd(), false).unwrap();
    client.memory().mapped().store_release(Word::SqTail, 1 << 20).unwrap();
    let mut enter = Enter { size: 32, to_submit: 1, ..Enter::default() };
    assert_eq!(raw::command(device.as_fd(), ioctl::ENTER, &mut enter), Err(Errno::EBADMSG));
    assert_eq!(count(&eventfd), 1);
}

pub(super) fn poll() {
    let device = Device::open().unwrap();
    let events = |limit: u16| {
        let mut fds = [PollFd::new(device.as_fd(), PollFlags::POLLIN | PollFlags::POLLOUT)];
        wait(&mut fds, PollTimeout::from(limit)).unwrap();
        fds[0].revents().unwrap()
    };
    assert_eq!(events(0), PollFlags::empty(), "no ring");
    let mut client = device.ring(2).unwrap();
    assert_eq!(events(60_000), PollFlags::POLLOUT);
    assert_eq!(client.push(&no_op(1)).unwrap(), Push::Queued);
    assert_eq!(client.push(&no_op(2)).unwrap(), Push::Queued);
    let ring = client.memory().mapped();
    ring.store_release(Word::SqTail, 2).unwrap();
    assert_eq!(events(0), PollFlags::empty(), "no slot is free, nothing is complete");
    client.publish().unwrap();
    assert_eq!(events(60_000), PollFlags::POLLIN | PollFlags::POLLOUT);
    client.pop().unwrap();
    assert!(events(60_000).contains(PollFlags::POLLIN), "one is left");
    client.pop().unwrap();
    assert_eq!(events(0), PollFlags::POLLOUT);
    let ring = client.memory().mapped();
    ring.store_release(Word::CqHead, 77).unwrap();
    assert!(events(60_000).contains(PollFlags::POLLERR));
}
