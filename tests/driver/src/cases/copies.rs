//! Copies, fills and signals against a reference made of plain vectors.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use dma_engine_uapi::command::access;
use dma_engine_uapi::descriptor::opcode;
use dma_engine_uapi::submission::flags;
use stepccl_device::{Descriptor, Device, Region, SubmissionEntry};
use stepccl_memory::Segment;

use crate::conformance::run;
use crate::noise::Noise;

/// Bytes of each of the two regions.
const BYTES: usize = 3 << 20;

/// Two regions, what should be in them, and random numbers.
struct Pair {
    device: Arc<Device>,
    regions: [Region; 2],
    /// Where each begins in its segment.
    places: [usize; 2],
    expected: [Vec<u8>; 2],
    noise: Noise,
}

impl Pair {
    fn new() -> Self {
        let mut noise = Noise::fresh();
        let device = Device::open().unwrap();
        let expected = [noise.bytes(BYTES), noise.bytes(BYTES)];
        // They need not begin or end where a page does.
        let places = [0, 1].map(|_| noise.below(5000) as usize);
        let regions = [0, 1].map(|index| {
            let (before, after) = (places[index], noise.below(5000) as usize);
            let segment = Arc::new(Segment::create("test", before + BYTES + after).unwrap());
            segment.view().copy_in(before, &expected[index]).unwrap();
            Region::new(&device, &segment, before, BYTES, access::ALL).unwrap()
        });
        Self { device, regions, places, expected, noise }
    }

    /// A random copy between the regions or within one, and its effect on what is expected.
    fn copy(&mut self) -> Descriptor {
        let length = match self.noise.below(4) {
            0 => 1 + self.noise.below(16),
            1 => 1 + self.noise.below(5000),
            _ => 1 + self.noise.below(BYTES as u64 / 4),
        } as usize;
        let (from, to) = (self.noise.below(2) as usize, self.noise.below(2) as usize);
        let place = |noise: &mut Noise| noise.below((BYTES - length) as u64 + 1) as usize;
        let (source, mut target) = (place(&mut self.noise), place(&mut self.noise));
        while from == to && source.abs_diff(target) < length {
            target = place(&mut self.noise);
        }
        let bytes = self.expected[from][source..][..length].to_vec();
        self.expected[to][target..][..length].copy_from_slice(&bytes);
        Descriptor {
            opcode: if self.noise.below(2) == 0 { opcode::READ } else { opcode::WRITE },
            src_addr: self.regions[from].address(source as u64).unwrap(),
            dst_addr: self.regions[to].address(target as u64).unwrap(),
            length: length as u32,
            ..Descriptor::default()
        }
    }

    /// All bytes, and those around the region, are as expected.
    fn check(&self) {
        for (index, region) in self.regions.iter().enumerate() {
            let mut all = vec![0; region.segment().bytes()];
            region.segment().view().copy_out(0, &mut all).unwrap();
            let (before, rest) = all.split_at(self.places[index]);
            let (bytes, after) = rest.split_at(BYTES);
            assert!(bytes == self.expected[index], "bytes of a region differ");
            assert!(before.iter().chain(after).all(|byte| *byte == 0), "bytes beside a region");
        }
    }
}

pub(super) fn exact() {
    let mut pair = Pair::new();
    for _ in 0..60 {
        let desc = pair.copy();
        let (moved, _) = pair.device.submit(desc).unwrap();
        assert_eq!(moved, desc.length);
    }
    pair.check();
}

pub(super) fn on_the_ring() {
    let mut pair = Pair::new();
    let mut client = pair.device.ring(32).unwrap();
    for _ in 0..8 {
        // One after the other: what one writes the next may read.
        let batch: Vec<_> = (0..1 + pair.noise.below(32))
            .map(|user_data| SubmissionEntry {
                desc: pair.copy(),
                user_data,
                flags: flags::DRAIN,
                ..SubmissionEntry::default()
            })
            .collect();
        for (data, completion) in run(&mut client, &batch) {
            assert_eq!(completion.outcome(), Ok(batch[data as usize].desc.length));
        }
        pair.check();
    }
}

pub(super) fn fills() {
    let mut pair = Pair::new();
    for _ in 0..40 {
        let length = 1 + pair.noise.below(20_000) as usize;
        let place = pair.noise.below((BYTES - length) as u64) as usize;
        let pattern = pair.noise.next();
        let desc = Descriptor {
            opcode: opcode::FILL,
            src_addr: pattern,
            dst_addr: pair.regions[1].address(place as u64).unwrap(),
            length: length as u32,
            ..Descriptor::default()
        };
        assert_eq!(pair.device.submit(desc).unwrap().0, desc.length);
        for (index, byte) in pair.expected[1][place..][..length].iter_mut().enumerate() {
            *byte = pattern.to_ne_bytes()[index % 8];
        }
    }
    pair.check();
}

pub(super) fn signals() {
    let device = Device::open().unwrap();
    let segment = Arc::new(Segment::create("test", 8192).unwrap());
    let region = Region::new(&device, &segment, 0, 8192, access::ALL).unwrap();
    let mut client = device.ring(8).unwrap();
    let word = segment.view().atomic_u64(8).unwrap();
    let copy = SubmissionEntry {
        desc: Descriptor {
            opcode: opcode::WRITE,
            src_addr: region.address(0).unwrap(),
            dst_addr: region.address(4096).unwrap(),
            length: 8,
            ..Descriptor::default()
        },
        signal_addr: region.address(8).unwrap(),
        ..SubmissionEntry::default()
    };
    let store = SubmissionEntry { flags: flags::SIGNAL_STORE, signal_value: 41, ..copy };
    let add = SubmissionEntry { flags: flags::SIGNAL_ADD, signal_value: 1, ..copy };
    run(&mut client, &[store]);
    assert_eq!(word.load(Ordering::Acquire), 41);
    run(&mut client, &[add]);
    assert_eq!(word.load(Ordering::Acquire), 42);
    run(&mut client, &[SubmissionEntry { signal_value: u64::MAX, ..add }]);
    assert_eq!(word.load(Ordering::Acquire), 41, "modulo 2^64");

    // A failure gives no signal.
    let mut failing = add;
    failing.desc.dst_addr = region.address(8188).unwrap();
    assert_eq!(run(&mut client, &[failing])[&0].outcome(), Err(34));
    assert_eq!(word.load(Ordering::Acquire), 41);
    // A region that begins between two words has no words on its multiples of 8.
    let odd = Region::new(&device, &segment, 4, 4096, access::ALL).unwrap();
    let misplaced = SubmissionEntry { signal_addr: odd.address(8).unwrap(), ..add };
    assert_eq!(run(&mut client, &[misplaced])[&0].outcome(), Err(22));
    // Without the right to write there is no signal.
    let read = Region::new(&device, &segment, 0, 4096, access::READ).unwrap();
    let forbidden = SubmissionEntry { signal_addr: read.address(8).unwrap(), ..add };
    assert_eq!(run(&mut client, &[forbidden])[&0].outcome(), Err(13));
    assert_eq!(word.load(Ordering::Acquire), 41);
}
