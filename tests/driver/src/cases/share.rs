//! Regions that other files and other processes use.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use dma_engine_uapi::command::{access, properties};
use dma_engine_uapi::descriptor::opcode;
use dma_engine_uapi::version::{DEVICE, feature};
use dma_engine_uapi::{Export, Import, Unregister, address, ioctl};
use nix::errno::Errno;
use stepccl_device::{Descriptor, Device, Imported, Region, SubmissionEntry};
use stepccl_memory::Segment;

use super::memory::{copy, register};
use super::raw::{self, Anonymous};
use crate::conformance::run;
use crate::noise::Noise;

/// Export a part of a region.
fn export(device: &Device, part: Export) -> Result<OwnedFd, Errno> {
    let mut argument = Export { size: 40, ..part };
    raw::command(device.as_fd(), ioctl::EXPORT, &mut argument)?;
    Ok(raw::own(argument.fd))
}

/// Import a file; returns the id and the length.
fn import(device: &Device, fd: i32, access: u32) -> Result<(u32, u64), Errno> {
    let mut argument = Import { size: 32, fd, access, ..Import::default() };
    raw::command(device.as_fd(), ioctl::IMPORT, &mut argument)?;
    assert_ne!(argument.properties & properties::REVOCABLE, 0);
    Ok((argument.region, argument.length))
}

fn unregister(device: &Device, region: u32) -> Result<(), Errno> {
    let mut argument = Unregister { size: 16, region, ..Unregister::default() };
    raw::command(device.as_fd(), ioctl::UNREGISTER, &mut argument)
}

fn at(region: u32, offset: u64) -> u64 {
    address::address(region, offset).unwrap()
}

/// Two files of one process, the owner's memory, and its region.
fn owner(bytes: usize) -> (Arc<Device>, Arc<Device>, Anonymous, u32) {
    let (owner, other) = (Device::open().unwrap(), Device::open().unwrap());
    let memory = Anonymous::new(bytes, true);
    let region = register(&owner, memory.address(), bytes as u64, access::ALL).unwrap();
    (owner, other, memory, region)
}

pub(super) fn parts_and_rights() {
    let (owner, other, memory, region) = owner(1 << 16);
    assert_ne!(owner.facts().features & feature::EXPORT, 0);
    let part =
        Export { region, access: access::READ, offset: 5000, length: 10_000, ..Export::default() };
    let readable = export(&owner, part).unwrap();
    let all = export(&owner, Export { region, access: access::ALL, ..Export::default() }).unwrap();
    let (reads, length) = import(&other, readable.as_raw_fd(), access::READ).unwrap();
    assert_eq!(length, 10_000);
    let (both, length) = import(&other, all.as_raw_fd(), access::ALL).unwrap();
    assert_eq!(length, 1 << 16);
    // The files are needed no longer.
    drop((readable, all));

    memory.set(5000, 0x5a);
    assert_eq!(copy(&other, at(reads, 0), at(both, 40_000), 1), Ok(1));
    assert_eq!(memory.get(40_000), 0x5a);
    // A long one, which a channel makes where there is one.
    memory.set(14_999, 0x77);
    assert_eq!(copy(&other, at(reads, 0), at(both, 40_000), 10_000), Ok(10_000));
    assert_eq!((memory.get(40_000), memory.get(49_999)), (0x5a, 0x77));
    assert_eq!(copy(&other, at(both, 0), at(reads, 0), 1), Err(Errno::EACCES));
    assert_eq!(copy(&other, at(reads, 1), at(both, 0), 10_000), Err(Errno::ERANGE));
    // Ids of the owner mean nothing here.
    assert_eq!(unregister(&other, both), Ok(()));
    assert_eq!(copy(&other, at(reads, 0), at(both, 0), 1), Err(Errno::ENOENT));
    assert_eq!(copy(&owner, at(region, 0), at(region, 100), 1), Ok(1), "the owner's stays");
}

pub(super) fn refused() {
    let (owner, other, memory, region) = owner(8192);
    let read = register(&owner, memory.address(), 4096, access::READ).unwrap();
    let whole = Export { region, access: access::READ, ..Export::default() };
    for (what, errno) in [
        (Export { region: region ^ 1 << 20, ..whole }, Errno::ENOENT),
        (Export { access: 0, ..whole }, Errno::EINVAL),
        (Export { access: 8, ..whole }, Errno::EOPNOTSUPP),
        (Export { region: read, access: access::ALL, ..whole }, Errno::EACCES),
        (Export { offset: 8192, ..whole }, Errno::ERANGE),
        (Export { offset: 1, length: 8192, ..whole }, Errno::ERANGE),
        (Export { length: u64::MAX, ..whole }, Errno::ERANGE),
        (Export { reserved: 1, ..whole }, Errno::EINVAL),
    ] {
        assert_eq!(export(&owner, what).unwrap_err(), errno, "{what:?}");
    }
    let fd = export(&owner, whole).unwrap();
    let device = File::open(DEVICE).unwrap();
    for (fd, access, errno) in [
        (fd.as_raw_fd(), access::ALL, Errno::EACCES),
        (fd.as_raw_fd(), 0, Errno::EINVAL),
        (-1, access::READ, Errno::EBADF),
        (999, access::READ, Errno::EBADF),
        (0, access::READ, Errno::EINVAL),
        (device.as_raw_fd(), access::READ, Errno::EINVAL),
    ] {
        assert_eq!(import(&other, fd, access), Err(errno), "{fd} {access}");
    }
    // What was given cannot be given on.
    let (imported, _) = import(&other, fd.as_raw_fd(), access::READ).unwrap();
    let again = Export { region: imported, ..whole };
    assert_eq!(export(&other, again).unwrap_err(), Errno::EOPNOTSUPP);
    // The file can do nothing else.
    assert_eq!(nix::unistd::read(&fd, &mut [0]), Err(Errno::EINVAL));
    assert!(raw::map(fd.as_fd(), 0, 4096, 1, 1).is_err());
}

pub(super) fn revoked() {
    let (owner, other, memory, region) = owner(8192);
    let fd = export(&owner, Export { region, access: access::ALL, ..Export::default() }).unwrap();
    let (imported, _) = import(&other, fd.as_raw_fd(), access::ALL).unwrap();
    assert_eq!(copy(&other, at(imported, 0), at(imported, 4096), 4096), Ok(4096));
    unregister(&owner, region).unwrap();
    assert_eq!(copy(&other, at(imported, 0), at(imported, 4096), 4096), Err(Errno::ESTALE));
    assert_eq!(import(&other, fd.as_raw_fd(), access::ALL), Err(Errno::ESTALE));
    unregister(&other, imported).unwrap();

    // The end of the owner's file does the same.
    let region = register(&owner, memory.address(), 4096, access::ALL).unwrap();
    let fd = export(&owner, Export { region, access: access::ALL, ..Export::default() }).unwrap();
    let (imported, _) = import(&other, fd.as_raw_fd(), access::ALL).unwrap();
    drop(owner);
    assert_eq!(copy(&other, at(imported, 0), at(imported, 64), 64), Err(Errno::ESTALE));
}

/// A child reads the parent's private memory and writes to it, with nothing but an inherited file.
pub(super) fn between_processes() {
    let mut noise = Noise::fresh();
    let owner = Device::open().unwrap();
    let memory = Anonymous::new(1 << 17, true);
    let bytes = noise.bytes(1 << 16);
    for (offset, byte) in bytes.iter().enumerate() {
        memory.set(offset, *byte);
    }
    let region = register(&owner, memory.address(), 1 << 17, access::ALL).unwrap();
    let fd = export(&owner, Export { region, access: access::ALL, ..Export::default() }).unwrap();
    let good = raw::in_child(|| {
        let device = Device::open().unwrap();
        let (theirs, length) = import(&device, fd.as_raw_fd(), access::ALL).unwrap();
        assert_eq!(length, 1 << 17);
        let own = Anonymous::new(1 << 16, true);
        let mine = register(&device, own.address(), 1 << 16, access::ALL).unwrap();
        copy(&device, at(theirs, 0), at(mine, 0), 1 << 16).unwrap();
        let same = bytes.iter().enumerate().all(|(offset, byte)| own.get(offset) == *byte);
        // Back, to another place, one byte changed.
        own.set(7, !bytes[7]);
        copy(&device, at(mine, 0), at(theirs, 1 << 16), 1 << 16).unwrap();
        same
    });
    assert!(good);
    for (offset, byte) in bytes.iter().enumerate() {
        let expected = if offset == 7 { !byte } else { *byte };
        assert_eq!(memory.get((1 << 16) + offset), expected, "{offset}");
    }
}

/// What the runtime makes of it: the child copies through its own ring.
pub(super) fn by_the_client() {
    let device = Device::open().unwrap();
    let segment = Arc::new(Segment::create("test", 8192).unwrap());
    segment.view().copy_in(0, &[0x3c; 4096]).unwrap();
    let region = Region::new(&device, &segment, 0, 8192, access::ALL).unwrap();
    let fd = region.export(0, 0, access::ALL).unwrap();
    let good = raw::in_child(|| {
        let device = Device::open().unwrap();
        let theirs = Imported::new(&device, fd.as_fd(), access::ALL).unwrap();
        let mut client = device.ring(4).unwrap();
        let desc = Descriptor {
            opcode: opcode::READ,
            src_addr: theirs.address(0).unwrap(),
            dst_addr: theirs.address(4096).unwrap(),
            length: 4096,
            ..Descriptor::default()
        };
        let entry = SubmissionEntry { desc, user_data: 9, ..SubmissionEntry::default() };
        let found = run(&mut client, &[entry])[&9].outcome() == Ok(4096);
        found && theirs.bytes() == 8192 && theirs.address(8192).is_none()
    });
    assert!(good);
    let mut bytes = [0; 4096];
    segment.view().copy_out(4096, &mut bytes).unwrap();
    assert_eq!(bytes, [0x3c; 4096]);
}
