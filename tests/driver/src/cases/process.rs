//! Processes that inherit, die or are looked at.

use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use dma_engine_uapi::command::access;
use dma_engine_uapi::{Enter, ioctl};
use nix::errno::Errno;
use stepccl_device::{Device, Region};
use stepccl_memory::Segment;

use super::raw;
use super::{memory, query};
use crate::conformance::{no_op, run};

pub(super) fn another_address_space() {
    let device = Device::open().unwrap();
    let mut client = device.ring(4).unwrap();
    let good = raw::in_child(|| {
        let mut enter = Enter { size: 32, ..Enter::default() };
        let fd = device.as_fd();
        let refused = [
            raw::command(fd, ioctl::QUERY, &mut query::query()),
            raw::command(fd, ioctl::ENTER, &mut enter),
            raw::map(fd, 0, 4096, 3, 1).map(drop),
        ];
        // The ring is not there any more: touching it would be a fault.
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        refused == [Err(Errno::EPERM); 3] && !maps.contains("dma_device")
    });
    assert!(good);
    run(&mut client, &[no_op(1)]);
}

/// Pages pinned and not unpinned, on the whole machine.
pub(super) fn pins_left() -> i64 {
    // Each processor counts for itself; this adds them up.
    fs::write("/proc/sys/vm/stat_refresh", "1").unwrap();
    let counters = fs::read_to_string("/proc/vmstat").unwrap();
    let read = |name: &str| {
        let line = counters.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse::<i64>().unwrap()
    };
    read("nr_foll_pin_acquired ") - read("nr_foll_pin_released ")
}

pub(super) fn killed() {
    assert_eq!(pins_left(), 0);
    for _ in 0..10 {
        raw::kill_when_ready(|ready| {
            let device = Device::open().unwrap();
            let segment = Arc::new(Segment::create("test", 1 << 20).unwrap());
            let region = Region::new(&device, &segment, 0, 1 << 20, access::ALL).unwrap();
            let half = 1 << 19;
            ready();
            loop {
                let (from, to) = (region.address(0).unwrap(), region.address(half).unwrap());
                memory::copy(&device, from, to, half as u32).unwrap();
            }
        });
        assert_eq!(pins_left(), 0);
    }
}

pub(super) fn fdinfo() {
    let device = Device::open().unwrap();
    let segment = Arc::new(Segment::create("test", 1 << 16).unwrap());
    let _region = Region::new(&device, &segment, 0, 1 << 16, access::ALL).unwrap();
    let mut client = device.ring(4).unwrap();
    run(&mut client, &[no_op(1)]);
    client.memory().device().submit(no_op(0).desc).unwrap();
    let path = format!("/proc/self/fdinfo/{}", device.as_fd().as_raw_fd());
    let text = fs::read_to_string(path).unwrap();
    for line in [
        "dma_engine_regions:\t1\n",
        "dma_engine_pinned_kb:\t64\n",
        "dma_engine_in_flight:\t0\n",
        "dma_engine_unread:\t0\n",
    ] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
}
