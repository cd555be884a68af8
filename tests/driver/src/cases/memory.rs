//! Regions: rights, ranges, ids, pins and limits.

use std::fs;
use std::os::fd::AsFd;
use std::sync::Arc;

use dma_engine_uapi::command::{access, properties};
use dma_engine_uapi::descriptor::opcode;
use dma_engine_uapi::{RegisterMemory, Unregister, address, ioctl};
use nix::errno::Errno;
use nix::sys::resource::{Resource, setrlimit};
use stepccl_device::{Descriptor, Device, DeviceError, Region};
use stepccl_memory::Segment;

use super::raw::{self, Anonymous};
use crate::noise::Noise;

/// Register any range; returns its id.
pub(super) fn register(
    device: &Device,
    address: u64,
    length: u64,
    access: u32,
) -> Result<u32, Errno> {
    let mut argument =
        RegisterMemory { size: 40, address, length, access, ..RegisterMemory::default() };
    raw::command(device.as_fd(), ioctl::REGISTER_MEMORY, &mut argument)?;
    assert_ne!(argument.properties & properties::CPU, 0);
    Ok(argument.region)
}

fn unregister(device: &Device, region: u32) -> Result<(), Errno> {
    let mut argument = Unregister { size: 16, region, ..Unregister::default() };
    raw::command(device.as_fd(), ioctl::UNREGISTER, &mut argument)
}

/// Copy between two addresses with a single submission.
pub(super) fn copy(device: &Device, from: u64, to: u64, length: u32) -> Result<u32, Errno> {
    let desc = Descriptor {
        opcode: opcode::WRITE,
        src_addr: from,
        dst_addr: to,
        length,
        ..Descriptor::default()
    };
    device.submit(desc).map(|(moved, _)| moved).map_err(|error| error.errno().unwrap())
}

fn at(region: u32, offset: u64) -> u64 {
    address::address(region, offset).unwrap()
}

pub(super) fn rights_and_ranges() {
    let device = Device::open().unwrap();
    let memory = Anonymous::new(1 << 16, true);
    let new = |access| register(&device, memory.address() + 100, 10_000, access).unwrap();
    let (reads, writes, both) = (new(access::READ), new(access::WRITE), new(access::ALL));
    assert_eq!(copy(&device, at(reads, 0), at(writes, 5000), 5000), Ok(5000));
    assert_eq!(copy(&device, at(both, 0), at(both, 5000), 5000), Ok(5000));
    assert_eq!(copy(&device, at(writes, 0), at(both, 5000), 10), Err(Errno::EACCES));
    assert_eq!(copy(&device, at(both, 0), at(reads, 5000), 10), Err(Errno::EACCES));
    for (from, to, length) in [
        (0, 9_999, 2),
        (9_999, 0, 2),
        (10_001, 0, 1),
        (0, (1 << 40) - 1, 1),
        (0, 10_000, 1),
        (0, 5_000, u32::MAX),
    ] {
        let refused = copy(&device, at(reads, from), at(writes, to), length);
        assert_eq!(refused, Err(Errno::ERANGE), "{from} {to} {length}");
    }
    let refused = |access| register(&device, memory.address(), 1, access).unwrap_err();
    assert_eq!((refused(0), refused(4)), (Errno::EINVAL, Errno::EOPNOTSUPP));
}

pub(super) fn stale_ids() {
    let device = Device::open().unwrap();
    let other = Device::open().unwrap();
    let memory = Anonymous::new(8192, true);
    let mut seen = Vec::new();
    let stays = register(&device, memory.address(), 4096, access::ALL).unwrap();
    for _ in 0..1500 {
        let id = register(&device, memory.address(), 4096, access::ALL).unwrap();
        assert_ne!(id, 0);
        assert_ne!(id, stays);
        assert!(!seen.iter().rev().take(1000).any(|old| *old == id), "an id came back early");
        assert_eq!(copy(&device, at(id, 0), at(stays, 2048), 64), Ok(64));
        unregister(&device, id).unwrap();
        assert_eq!(copy(&device, at(id, 0), at(stays, 0), 64), Err(Errno::ENOENT));
        assert_eq!(unregister(&device, id), Err(Errno::ENOENT));
        seen.push(id);
    }
    // Ids of one file mean nothing in another one.
    assert_eq!(copy(&other, at(stays, 0), at(stays, 2048), 64), Err(Errno::ENOENT));
    // As many as the driver says, and no more.
    let most = device.facts().max_regions;
    let ids: Vec<_> =
        (1..most).map(|_| register(&device, memory.address(), 1, access::READ).unwrap()).collect();
    let refused = register(&device, memory.address(), 1, access::READ);
    assert_eq!(refused, Err(Errno::ENOSPC));
    unregister(&device, ids[7]).unwrap();
    register(&device, memory.address(), 1, access::READ).unwrap();
}

pub(super) fn not_pinned() {
    let device = Device::open().unwrap();
    let memory = Anonymous::new(1 << 14, true);
    let hole = 0x10_0000;
    for (address, length, access, errno) in [
        (hole, 4096, access::READ, Errno::EFAULT),
        (memory.address(), 0, access::READ, Errno::EINVAL),
        (memory.address(), u64::MAX, access::READ, Errno::EINVAL),
        (u64::MAX - 10, 100, access::READ, Errno::EOVERFLOW),
        (1 << 63, 4096, access::READ, Errno::EOVERFLOW),
    ] {
        assert_eq!(register(&device, address, length, access), Err(errno), "{address:#x}");
    }
    let read_only = Anonymous::new(8192, false);
    let write = register(&device, read_only.address(), 8192, access::WRITE);
    assert_eq!(write, Err(Errno::EFAULT));
    assert!(register(&device, read_only.address(), 8192, access::READ).is_ok());
    assert_eq!(device.query().unwrap().pinned_bytes, 8192, "the others left nothing");
}

/// `VmPin` of this process in bytes.
fn pinned() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPin:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() * 1024
}

pub(super) fn charged() {
    let mut noise = Noise::fresh();
    let before = pinned();
    let device = Device::open().unwrap();
    let segment = Arc::new(Segment::create("test", 8 << 20).unwrap());
    let mut regions = Vec::new();
    let mut expected = 0;
    for _ in 0..40 {
        let bytes = 1 + noise.below(1 << 20);
        let offset = noise.below((8 << 20) - bytes);
        expected += ((offset % 4096) + bytes).div_ceil(4096) * 4096;
        let region =
            Region::new(&device, &segment, offset as usize, bytes as usize, access::ALL).unwrap();
        assert_eq!(pinned() - before, expected);
        assert_eq!(device.query().unwrap().pinned_bytes, before + expected);
        regions.push(region);
    }
    regions.truncate(20);
    assert!(pinned() - before < expected);
    for region in regions.drain(..).take(10) {
        region.unregister().unwrap();
    }
    drop(regions);
    assert_eq!(pinned(), before);
}

pub(super) fn limit() {
    let good = raw::in_child(|| {
        let limit = 1 << 20;
        setrlimit(Resource::RLIMIT_MEMLOCK, limit, limit).unwrap();
        let device = Device::open().unwrap();
        raw::drop_capabilities();
        assert_eq!(device.query().unwrap().pinned_limit_bytes, limit);
        let memory = Anonymous::new(2 << 20, true);
        let half = register(&device, memory.address(), limit / 2, access::ALL).unwrap();
        register(&device, memory.address(), limit / 2, access::ALL).unwrap();
        for length in [1, 4096, 2 << 20] {
            let refused = register(&device, memory.address(), length, access::ALL);
            assert_eq!(refused, Err(Errno::ENOMEM), "{length}");
        }
        unregister(&device, half).unwrap();
        register(&device, memory.address(), 4096, access::ALL).unwrap();
        true
    });
    assert!(good);
}

/// What the process maps later at the same place is not what is copied.
pub(super) fn follow_pages() {
    let device = Device::open().unwrap();
    let (source, target) = (Anonymous::new(4096, true), Anonymous::new(4096, true));
    source.set(7, 0x5a);
    let from = register(&device, source.address(), 4096, access::READ).unwrap();
    let to = register(&device, target.address(), 4096, access::WRITE).unwrap();
    source.replace_pages();
    assert_eq!(source.get(7), 0);
    assert_eq!(copy(&device, at(from, 0), at(to, 0), 4096), Ok(4096));
    assert_eq!(target.get(7), 0x5a, "the pages that were registered");
    drop(source);
    target.set(7, 1);
    assert_eq!(copy(&device, at(from, 0), at(to, 0), 4096), Ok(4096));
    assert_eq!(target.get(7), 0x5a, "also when nothing is mapped there");
    let gone = Region::new(&device, &Arc::new(Segment::create("t", 4096).unwrap()), 0, 8192, 1);
    assert!(matches!(gone, Err(DeviceError::Ring(_))));
}
