//! Instructions of an operation, in a guest whose clock counts them (`-icount shift=0`): one
//! nanosecond is one instruction. `scripts/driver-cost` runs it.

use std::sync::Arc;
use std::time::Instant;

use dma_engine_uapi::command::access;
use dma_engine_uapi::descriptor::{flags, opcode};
use stepccl_device::{Client, Descriptor, Device, DeviceEnd, Push, Region, SubmissionEntry};
use stepccl_driver_tests::conformance::{next, no_op};
use stepccl_memory::Segment;

/// The least of several rounds, a round.
fn least(rounds: u32, mut round: impl FnMut()) -> u128 {
    for _ in 0..8 {
        round();
    }
    let measure = |_| {
        let start = Instant::now();
        for _ in 0..rounds {
            round();
        }
        start.elapsed().as_nanos() / u128::from(rounds)
    };
    (0..5).map(measure).min().unwrap_or(0)
}

/// Submit a batch and read its completions.
fn batch(client: &mut Client<DeviceEnd>, entry: &SubmissionEntry, count: u32) {
    for _ in 0..count {
        assert_eq!(client.push(entry).unwrap(), Push::Queued);
    }
    client.publish().unwrap();
    for _ in 0..count {
        assert!(next(client).outcome().is_ok());
    }
}

fn main() {
    let device = Device::open().unwrap();
    let mut client = device.ring(64).unwrap();
    for count in [1, 64] {
        let total = least(200, || batch(&mut client, &no_op(0), count));
        println!("no-op, batch of {count:<3} {:>8}", total / u128::from(count));
    }
    let bytes = 2 << 20;
    let segment = Arc::new(Segment::create("cost", bytes).unwrap());
    segment.populate(0, bytes).unwrap();
    let region = Region::new(&device, &segment, 0, bytes, access::ALL).unwrap();
    let paths: &[(&str, u8)] = match device.facts().channels {
        0 => &[("CPU", flags::CPU)],
        _ => &[("CPU", flags::CPU), ("channel", flags::CHANNEL)],
    };
    for (path, flags) in paths {
        for length in [4096_u32, 65536, 1 << 20] {
            let desc = Descriptor {
                opcode: opcode::WRITE,
                flags: *flags,
                src_addr: region.address(0).unwrap(),
                dst_addr: region.address(1 << 20).unwrap(),
                length,
                ..Descriptor::default()
            };
            let entry = SubmissionEntry { desc, ..SubmissionEntry::default() };
            for count in [1, 64] {
                let total = least(20, || batch(&mut client, &entry, count));
                let each = total / u128::from(count);
                println!("{length:>7} bytes by {path}, batch of {count:<3} {each:>8}");
            }
        }
    }
    let registered = least(20, || {
        Region::new(&device, &segment, 0, bytes, access::ALL).unwrap().unregister().unwrap();
    });
    println!("register and unregister 2 MiB {registered:>8}");
}
