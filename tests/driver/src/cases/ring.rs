//! What a ring of the driver refuses.

use std::os::fd::AsFd;

use dma_engine_uapi::{Enter, RingSetup, ioctl, ring::sq_flags};
use nix::errno::Errno;
use nix::libc;
use stepccl_device::{Client, Device, DeviceEnd, Push, RingError, RingMemory, Word};

use super::raw;
use crate::conformance::{next, no_op};

fn setup(sq_entries: u32, cq_entries: u32) -> RingSetup {
    RingSetup { size: 88, sq_entries, cq_entries, numa_node: -1, ..RingSetup::default() }
}

pub(super) fn sizes() {
    let device = Device::open().unwrap();
    let fd = device.as_fd();
    let make = |setup: RingSetup| raw::command(fd, ioctl::RING_SETUP, &mut { setup });
    let most = device.facts().max_entries;
    for (sq, cq) in [(0, 0), (3, 8), (8, 3), (8, 4), (2 * most, 0), (most, 4 * most), (1 << 31, 0)]
    {
        assert_eq!(make(setup(sq, cq)), Err(Errno::EINVAL), "{sq} {cq}");
    }
    for numa_node in [-2, 1, 77, i32::MAX] {
        assert_eq!(make(RingSetup { numa_node, ..setup(4, 8) }), Err(Errno::EINVAL), "{numa_node}");
    }
    assert_eq!(make(RingSetup { poll_idle_us: 1, ..setup(4, 8) }), Err(Errno::EINVAL));
    assert_eq!(make(RingSetup { numa_node: 0, ..setup(4, 8) }), Ok(()));
    assert_eq!(make(setup(4, 8)), Err(Errno::EEXIST));

    let other = Device::open().unwrap();
    let mut enter = Enter { size: 32, ..Enter::default() };
    assert_eq!(raw::command(other.as_fd(), ioctl::ENTER, &mut enter), Err(Errno::ENXIO));
    drop(other.ring(other.facts().max_entries).unwrap());
}

pub(super) fn mappings() {
    let device = Device::open().unwrap();
    let fd = device.as_fd();
    let (both, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    assert_eq!(raw::map(fd, 0, 4096, both, shared), Err(Errno::EINVAL), "no ring yet");
    let mut setup = setup(4, 8);
    raw::command(fd, ioctl::RING_SETUP, &mut setup).unwrap();
    let bytes = setup.map_bytes as usize;
    assert_eq!(setup.cq_entries, 8);
    assert_eq!(raw::map(fd, 0, bytes, both, libc::MAP_PRIVATE), Err(Errno::EINVAL));
    assert_eq!(raw::map(fd, 0, bytes + 4096, both, shared), Err(Errno::EINVAL));
    assert_eq!(raw::map(fd, 4096, bytes, both, shared), Err(Errno::EINVAL));
    assert_eq!(raw::map(fd, 0, bytes, both | libc::PROT_EXEC, shared), Err(Errno::EACCES));
    assert_eq!(raw::map(fd, 0, bytes, libc::PROT_READ, shared), Err(Errno::EACCES));
    raw::map(fd, 0, bytes, both, shared).unwrap();
}

fn client(entries: u32) -> Client<DeviceEnd> {
    Device::open().unwrap().ring(entries).unwrap()
}

pub(super) fn lies() {
    for (word, value) in [
        (Word::SqTail, 5),
        (Word::SqTail, u32::MAX),
        (Word::SqTail, 1 << 31),
        (Word::CqHead, 1),
        (Word::CqHead, u32::MAX),
    ] {
        let client = client(4);
        let end = client.memory();
        end.mapped().store_release(word, value).unwrap();
        let mut enter = Enter {
            size: 32,
            to_submit: 1,
            min_complete: 1,
            timeout_ns: 1_000_000_000,
            ..Enter::default()
        };
        for _ in 0..2 {
            let refused = raw::command(end.device().as_fd(), ioctl::ENTER, &mut enter);
            assert_eq!(refused, Err(Errno::EBADMSG), "{word} {value}");
        }
        let flags = end.mapped().load_acquire(Word::SqFlags).unwrap();
        assert_ne!(flags & sq_flags::FAILED, 0, "{word} {value}");
    }
    // What was completed before is still read.
    let mut client = client(4);
    crate::conformance::run(&mut client, &[no_op(1)]);
    assert_eq!(client.push(&no_op(2)).unwrap(), Push::Queued);
    client.publish().unwrap();
    client.memory().mapped().store_release(Word::SqTail, 1000).unwrap();
    let mut enter = Enter { size: 32, to_submit: 9, ..Enter::default() };
    let fd = client.memory().device().clone();
    assert_eq!(raw::command(fd.as_fd(), ioctl::ENTER, &mut enter), Err(Errno::EBADMSG));
    assert_eq!(next(&mut client).user_data, 2);
    assert_eq!(client.pop(), Err(RingError::Failed));
}

/// A client without manners: more under way than completion slots.
pub(super) fn no_completion_slot() {
    let client = client(2);
    let end = client.memory();
    let (ring, fd) = (end.mapped(), end.device().as_fd());
    for slot in 0..2 {
        ring.write_submission(slot, no_op(u64::from(slot)).to_words()).unwrap();
    }
    let enter = |to_submit| {
        let mut enter = Enter { size: 32, to_submit, ..Enter::default() };
        raw::command(fd, ioctl::ENTER, &mut enter).unwrap();
        (enter.submitted, enter.completed)
    };
    for (tail, found) in [(2, (2, 2)), (4, (2, 4)), (6, (0, 4)), (6, (0, 4))] {
        ring.store_release(Word::SqTail, tail).unwrap();
        assert_eq!(enter(8), found, "tail {tail}");
    }
    assert_eq!(client.stalls().unwrap(), 1, "one stall, however often it is looked at");
    assert_ne!(ring.load_acquire(Word::SqFlags).unwrap() & sq_flags::CQ_FULL, 0);
    ring.store_release(Word::CqHead, 1).unwrap();
    assert_eq!(enter(8), (1, 4));
    ring.store_release(Word::CqHead, 5).unwrap();
    assert_eq!(enter(8), (1, 1));
    assert_eq!(ring.load_acquire(Word::SqFlags).unwrap() & sq_flags::CQ_FULL, 0);
}
