//! What the driver says about itself.

use std::fs::File;
use std::os::fd::AsFd;

use dma_engine_uapi::version::{ABI_OLDEST, ABI_VERSION, DEVICE, feature};
use dma_engine_uapi::{Query, RingSetup, ioctl};
use nix::errno::Errno;
use stepccl_device::Device;

use super::raw;

/// An open file of the device that was asked nothing.
pub(super) fn open() -> File {
    File::options().read(true).write(true).open(DEVICE).unwrap()
}

/// An argument that the driver takes.
pub(super) fn query() -> Query {
    Query {
        size: size_of::<Query>() as u32,
        abi_version: ABI_VERSION,
        abi_oldest: ABI_OLDEST,
        ..Query::default()
    }
}

/// Print what it says, and check what cannot be otherwise.
pub(super) fn says_what_it_can() {
    let device = Device::open().unwrap();
    let facts = device.query().unwrap();
    println!("     {facts:?}");
    assert_eq!(facts.driver_version, ABI_VERSION);
    assert_eq!(facts.node, 0);
    assert!(facts.copy_align.is_power_of_two());
    assert!(facts.max_entries.is_power_of_two());
    assert!(facts.max_regions > 0 && facts.max_in_flight > 0 && facts.op_timeout_ms > 0);
    assert_eq!(facts.channels > 0, facts.features & feature::CHANNELS != 0);
    assert_eq!(facts.pinned_bytes, 0, "nothing was registered");
}

pub(super) fn versions_that_do_not_fit() {
    let file = open();
    for (abi_version, abi_oldest) in [(0, 0), (ABI_VERSION + 1, ABI_VERSION + 1)] {
        let mut query = Query { abi_version, abi_oldest, ..query() };
        let refused = raw::command(file.as_fd(), ioctl::QUERY, &mut query);
        assert_eq!(refused, Err(Errno::EPROTONOSUPPORT));
        assert_eq!((query.driver_version, query.driver_oldest), (ABI_VERSION, ABI_OLDEST));
    }
    let mut setup = RingSetup { size: 88, sq_entries: 4, numa_node: -1, ..RingSetup::default() };
    let early = raw::command(file.as_fd(), ioctl::RING_SETUP, &mut setup);
    assert_eq!(early, Err(Errno::EPROTO));
    // A newer caller that still takes this driver.
    let mut newer = Query { abi_version: ABI_VERSION + 5, ..query() };
    assert_eq!(raw::command(file.as_fd(), ioctl::QUERY, &mut newer), Ok(()));
}

pub(super) fn comes_first() {
    let file = open();
    for number in ioctl::QUERY + 1..=ioctl::ATTACH_PROXY {
        assert_eq!(raw::ioctl(file.as_fd(), number, 0), Err(Errno::EPROTO), "{number:#x}");
    }
}
