//! Sizes, tails, flags and reserved fields of every command.

use std::fs::File;
use std::os::fd::AsFd;

use dma_engine_uapi::{COMMANDS, Query, RegisterMemory, Unregister, ioctl};
use nix::errno::Errno;

use super::query::{open, query};
use super::raw;

/// Aligned bytes with room for a tail.
#[repr(C, align(8))]
struct Bytes([u8; 8192]);

impl Bytes {
    fn sized(size: u32) -> Box<Self> {
        let mut bytes = Box::new(Self([0; 8192]));
        bytes.0[..4].copy_from_slice(&size.to_ne_bytes());
        bytes
    }

    fn run(&mut self, file: &File, number: u32) -> Result<(), Errno> {
        raw::command(file.as_fd(), number, &mut self.0)
    }
}

/// A file that takes all commands.
fn ready() -> File {
    let file = open();
    raw::command(file.as_fd(), ioctl::QUERY, &mut query()).unwrap();
    file
}

pub(super) fn lengths() {
    let file = ready();
    for (number, known) in COMMANDS {
        let known = known as u32;
        for short in [0, 1, 3, 4, known - 8, known - 1] {
            assert_eq!(Bytes::sized(short).run(&file, number), Err(Errno::EINVAL), "{number:#x}");
        }
        for (long, place) in [(known + 8, known), (known + 8, known + 7), (4096, 4095)] {
            let mut bytes = Bytes::sized(long);
            bytes.0[place as usize] = 1;
            assert_eq!(bytes.run(&file, number), Err(Errno::E2BIG), "{number:#x} {long}");
        }
        for long in [4097, u32::MAX] {
            assert_eq!(Bytes::sized(long).run(&file, number), Err(Errno::E2BIG), "{number:#x}");
        }
        // A tail of zeros is no reason to refuse.
        let (plain, longer) = (Bytes::sized(known), Bytes::sized(known + 24));
        let [plain, longer] = [plain, longer].map(|mut bytes| bytes.run(&file, number));
        assert_eq!(plain, longer, "{number:#x}");
    }
    // What lies behind the driver's struct is left alone.
    let mut bytes = Bytes::sized(size_of::<Query>() as u32 + 8);
    bytes.0[8] = 1;
    bytes.0[12] = 1;
    assert_eq!(bytes.run(&file, ioctl::QUERY), Ok(()));
    assert_eq!(bytes.0[size_of::<Query>()..][..8], [0; 8]);
}

pub(super) fn unknown_and_reserved() {
    let file = ready();
    for (number, known) in COMMANDS {
        let mut bytes = Bytes::sized(known as u32);
        bytes.0[7] = 0x80;
        let refused = bytes.run(&file, number);
        assert_eq!(refused, Err(Errno::EOPNOTSUPP), "an unknown flag of {number:#x}");
    }
    let fd = file.as_fd();
    let mut reserved = Query { reserved: [0, 0, 1], ..query() };
    assert_eq!(raw::command(fd, ioctl::QUERY, &mut reserved), Err(Errno::EINVAL));
    let mut memory = RegisterMemory {
        size: 40,
        address: 0x1000,
        length: 1,
        access: 1,
        reserved: 1,
        ..RegisterMemory::default()
    };
    assert_eq!(raw::command(fd, ioctl::REGISTER_MEMORY, &mut memory), Err(Errno::EINVAL));
    let mut unregister = Unregister { size: 16, region: 1, reserved: 1, ..Unregister::default() };
    assert_eq!(raw::command(fd, ioctl::UNREGISTER, &mut unregister), Err(Errno::EINVAL));
}

pub(super) fn unknown_commands() {
    let file = ready();
    let with_size = ioctl::QUERY | 88 << 16 | 3 << 30;
    for number in [0, ioctl::QUERY & !0xff | 0xff, ioctl::ATTACH_PROXY + 1, with_size, 0x5401] {
        assert_eq!(raw::ioctl(file.as_fd(), number, 0), Err(Errno::ENOTTY), "{number:#x}");
    }
}

pub(super) fn unreachable() {
    let file = ready();
    for (number, _) in COMMANDS {
        for address in [0, 8, usize::MAX - 7, 1 << 63] {
            let refused = raw::ioctl(file.as_fd(), number, address);
            assert_eq!(refused, Err(Errno::EFAULT), "{number:#x} at {address:#x}");
        }
    }
    // Readable, but not writable: what the command made is undone.
    let page = raw::Anonymous::new(4096, true);
    let argument = RegisterMemory {
        size: 40,
        address: page.address(),
        length: 64,
        access: 1,
        ..RegisterMemory::default()
    };
    let place = raw::Anonymous::new(4096, true);
    place.fill_with(&argument);
    place.forbid_writes();
    let refused = raw::ioctl(file.as_fd(), ioctl::REGISTER_MEMORY, place.address() as usize);
    assert_eq!(refused, Err(Errno::EFAULT));
    let mut after = query();
    raw::command(file.as_fd(), ioctl::QUERY, &mut after).unwrap();
    assert_eq!(after.pinned_bytes, 0, "the region was undone");
}
