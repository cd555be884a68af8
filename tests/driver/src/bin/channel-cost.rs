//! Instructions of copies by hardware channels, in a guest whose clock counts them and which sleeps
//! while it waits: its time, less the time that its processor had nothing to do. Interrupts and
//! what runs after them count. `scripts/driver-cost` runs it.

use std::fs;
use std::io::IoSliceMut;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dma_engine_uapi::command::access;
use dma_engine_uapi::descriptor::{flags, opcode};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use stepccl_device::{Client, Descriptor, Device, DeviceEnd, Push, Region, SubmissionEntry};
use stepccl_driver_tests::conformance::next;
use stepccl_memory::Segment;

/// Bytes of the source, and of the destination.
const BYTES: usize = 8 << 20;
/// Entries that are submitted together.
const BATCH: usize = 64;

/// For how long the processor had nothing to do, to 10 ms.
fn idle() -> Duration {
    let text = fs::read_to_string("/proc/stat").unwrap();
    let ticks: u64 = text.split_ascii_whitespace().nth(4).unwrap().parse().unwrap();
    Duration::from_millis(10 * ticks)
}

/// Instructions of something that takes long.
fn instructions(work: impl FnOnce()) -> u128 {
    let (start, before) = (Instant::now(), idle());
    work();
    (start.elapsed() - (idle() - before)).as_nanos()
}

/// Copy `total` bytes by descriptors of `length`.
fn copy(
    client: &mut Client<DeviceEnd>,
    (from, to): (&Region, &Region),
    total: usize,
    length: usize,
) {
    let mut offsets = (0..BYTES).step_by(length).cycle();
    let mut left = total / length;
    while left > 0 {
        let count = left.min(BATCH);
        for offset in offsets.by_ref().take(count) {
            let desc = Descriptor {
                opcode: opcode::WRITE,
                flags: flags::CHANNEL,
                src_addr: from.address(offset as u64).unwrap(),
                dst_addr: to.address(offset as u64).unwrap(),
                length: length as u32,
                ..Descriptor::default()
            };
            let entry = SubmissionEntry { desc, ..SubmissionEntry::default() };
            assert_eq!(client.push(&entry).unwrap(), Push::Queued);
        }
        client.publish().unwrap();
        for _ in 0..count {
            assert_eq!(next(client).outcome(), Ok(length as u32));
        }
        left -= count;
    }
}

/// Read `total` bytes of this process as one reads those of another.
fn read_process(source: &Segment, destination: &mut [u8], total: usize, length: usize) {
    for offset in (0..BYTES).step_by(length).cycle().take(total / length) {
        let remote = RemoteIoVec { base: source.base() as usize + offset, len: length };
        let local = IoSliceMut::new(&mut destination[offset..][..length]);
        assert_eq!(process_vm_readv(Pid::this(), &mut [local], &[remote]), Ok(length));
    }
}

fn main() {
    let device = Device::open().unwrap();
    assert!(device.facts().channels > 0, "there is no channel");
    let mut client = device.ring(BATCH as u32).unwrap();
    let segment = |name| {
        let segment = Arc::new(Segment::create(name, BYTES).unwrap());
        segment.populate(0, BYTES).unwrap();
        segment
    };
    let (source, destination) = (segment("source"), segment("destination"));
    let from = Region::new(&device, &source, 0, BYTES, access::READ).unwrap();
    let to = Region::new(&device, &destination, 0, BYTES, access::WRITE).unwrap();

    copy(&mut client, (&from, &to), BYTES, 4096);
    // So many bytes that 10 ms are at most a tenth.
    for (length, total) in [(4096, 1 << 30), (65536, 4 << 30), (1 << 20, 8 << 30)] {
        let each = |cost: u128, bytes: usize| cost / (bytes / length) as u128;
        let cost = instructions(|| copy(&mut client, (&from, &to), total, length));
        let cost = each(cost, total);
        let mut local = vec![0; BYTES];
        let read = instructions(|| read_process(&source, &mut local, 1 << 30, length));
        let read = each(read, 1 << 30);
        let share = cost as f64 / read as f64 * 100.0;
        println!(
            "{length:>7} bytes by a channel, batch of 64  {cost:>8}: {share:>5.1} % of process_vm_readv, {read}"
        );
    }
}
