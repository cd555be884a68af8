//! Copies by hardware channels, and what can go wrong with them.
//!
//! The guest's variable `CHANNELS` says how many there are. Where there are some, they are those of
//! `tests/ioat-model`, which can be asked for faults: its `fault.rs` has the marks.

use std::sync::Arc;

use dma_engine_uapi::command::{access, properties};
use dma_engine_uapi::completion::flags as done_flags;
use dma_engine_uapi::descriptor::{flags as desc_flags, opcode};
use dma_engine_uapi::status::{EIO, EOPNOTSUPP, ETIMEDOUT};
use dma_engine_uapi::submission::flags;
use dma_engine_uapi::version::feature;
use stepccl_device::{Client, Descriptor, Device, DeviceEnd, Push, Region, SubmissionEntry};
use stepccl_memory::Segment;

use super::process::pins_left;
use super::raw;
use crate::conformance::{next, no_op, run};
use crate::noise::Noise;

const BYTES: usize = 1 << 20;
const LATE: u64 = 1;
const HALT: u64 = 2;
const HALF: u64 = 3;
const SILENT: u64 = 4;
const HANG: u64 = 5;

/// How many channels there should be.
fn expected() -> u32 {
    std::env::var("CHANNELS").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A device with a region of random bytes.
struct Scene {
    device: Arc<Device>,
    region: Region,
    noise: Noise,
}

impl Scene {
    /// `None` where there are no channels.
    fn new() -> Option<Self> {
        if expected() == 0 {
            println!("     no channels");
            return None;
        }
        let mut noise = Noise::fresh();
        let device = Device::open().unwrap();
        let segment = Arc::new(Segment::create("test", BYTES).unwrap());
        segment.view().copy_in(0, &noise.bytes(BYTES)).unwrap();
        let region = Region::new(&device, &segment, 0, BYTES, access::ALL).unwrap();
        assert_ne!(region.properties() & properties::CHANNEL, 0);
        Some(Self { device, region, noise })
    }

    fn read(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.region.segment().view().copy_out(offset, &mut bytes).unwrap();
        bytes
    }

    /// Make a source ask for a fault.
    fn mark(&self, offset: usize, fault: u64) {
        let mut mark = b"ioat-model:fault".to_vec();
        mark.extend(fault.to_le_bytes());
        self.region.segment().view().copy_in(offset, &mark).unwrap();
    }

    /// A copy by a channel and by nothing else.
    fn copy(&self, number: u64, from: usize, to: usize, length: usize) -> SubmissionEntry {
        SubmissionEntry {
            desc: Descriptor {
                opcode: opcode::WRITE,
                flags: desc_flags::CHANNEL,
                src_addr: self.region.address(from as u64).unwrap(),
                dst_addr: self.region.address(to as u64).unwrap(),
                length: length as u32,
                ..Descriptor::default()
            },
            user_data: number,
            ..SubmissionEntry::default()
        }
    }
}

/// Publish entries and wait for none of them.
fn publish(client: &mut Client<DeviceEnd>, entries: &[SubmissionEntry]) {
    for entry in entries {
        assert_eq!(client.push(entry).unwrap(), Push::Queued);
    }
    client.publish().unwrap();
}

pub(super) fn copy() {
    let device = Device::open().unwrap();
    let facts = device.facts();
    assert_eq!(facts.channels, expected());
    assert_eq!(facts.features & feature::CHANNELS != 0, expected() > 0);
    let Some(mut scene) = Scene::new() else {
        let segment = Arc::new(Segment::create("test", 8192).unwrap());
        let region = Region::new(&device, &segment, 0, 8192, access::ALL).unwrap();
        let only_channel = Descriptor {
            opcode: opcode::READ,
            flags: desc_flags::CHANNEL,
            src_addr: region.address(0).unwrap(),
            dst_addr: region.address(4096).unwrap(),
            length: 4096,
            ..Descriptor::default()
        };
        let refused = device.submit(only_channel).unwrap_err();
        assert_eq!(refused.errno().map(|errno| errno as i32), Some(EOPNOTSUPP));
        return;
    };
    let mut client = scene.device.ring(64).unwrap();
    let half = BYTES / 2;
    for _ in 0..40 {
        let length = 1 + scene.noise.below(half as u64) as usize;
        let from = scene.noise.below((half - length) as u64 + 1) as usize;
        let to = half + scene.noise.below((half - length) as u64 + 1) as usize;
        let found = run(&mut client, &[scene.copy(3, from, to, length)])[&3];
        assert_eq!((found.outcome(), found.flags), (Ok(length as u32), 0));
        assert!(scene.read(to, length) == scene.read(from, length));
    }
    // Many at once, each to a place of its own.
    let place = |number: usize| (number * 8192, half + number * 8192);
    let batch: Vec<_> = (0..64)
        .map(|number| (number as u64, place(number)))
        .map(|(number, (from, to))| scene.copy(number, from, to, 8192 - number as usize))
        .collect();
    for (number, found) in run(&mut client, &batch) {
        let (from, to) = place(number as usize);
        let length = 8192 - number as usize;
        assert_eq!((found.outcome(), found.flags), (Ok(length as u32), 0));
        assert!(scene.read(to, length) == scene.read(from, length));
    }
    // The CPU where it is asked for.
    let mut by_cpu = scene.copy(0, 0, half, 8192);
    by_cpu.desc.flags = desc_flags::CPU;
    assert_eq!(run(&mut client, &[by_cpu])[&0].flags, done_flags::CPU);
}

pub(super) fn at_once() {
    let Some(scene) = Scene::new() else { return };
    let mut client = scene.device.ring(8).unwrap();
    scene.mark(0, LATE);
    // The late one waits for the other one, which another channel makes.
    let found = run(&mut client, &[scene.copy(0, 0, 8192, 4096), scene.copy(1, 4096, 12288, 4096)]);
    assert!(found.values().all(|done| done.outcome() == Ok(4096)));
    assert!(scene.read(8192, 8192) == scene.read(0, 8192));
}

pub(super) fn ordered() {
    let Some(scene) = Scene::new() else { return };
    let mut client = scene.device.ring(8).unwrap();
    scene.mark(0, LATE);
    let late = scene.copy(0, 0, 8192, 4096);
    let other = scene.copy(1, 65536, 131_072, 4096);
    // What comes after must see the late copy.
    let mut after = scene.copy(2, 8192, 16384, 4096);
    after.desc.flags = desc_flags::CPU;
    after.flags = flags::DRAIN;
    // What is behind it in its batch must not be waited for.
    run(&mut client, &[late, other, after, no_op(3), no_op(4)]);
    assert!(scene.read(16384, 4096) == scene.read(0, 4096));

    let mut linked = scene.copy(0, 0, 24576, 4096);
    linked.flags = flags::LINK;
    let mut follows = scene.copy(2, 24576, 32768, 4096);
    follows.desc.flags = desc_flags::CPU;
    run(&mut client, &[other, linked, follows]);
    assert!(scene.read(32768, 4096) == scene.read(0, 4096));
}

pub(super) fn halt() {
    let Some(scene) = Scene::new() else { return };
    let mut client = scene.device.ring(8).unwrap();
    for fault in [HALT, HALF] {
        scene.mark(0, fault);
        let mut failing = scene.copy(0, 0, 8192, 4096);
        failing.flags = flags::LINK;
        let found = run(&mut client, &[failing, no_op(1)]);
        assert_eq!(found[&0].outcome(), Err(EIO), "fault {fault}");
        assert!(found[&1].outcome().is_err(), "the chain stopped");
        // Both channels work on.
        let good = [scene.copy(0, 4096, 12288, 4096), scene.copy(1, 4096, 16384, 4096)];
        for found in run(&mut client, &good).values() {
            assert_eq!(found.outcome(), Ok(4096));
        }
        assert!(scene.read(12288, 4096) == scene.read(4096, 4096));
    }
}

pub(super) fn lost_interrupt() {
    let Some(scene) = Scene::new() else { return };
    let mut client = scene.device.ring(8).unwrap();
    scene.mark(0, SILENT);
    let found = run(&mut client, &[scene.copy(0, 0, 8192, 4096)]);
    assert_eq!(found[&0].outcome(), Ok(4096));
    assert!(scene.read(8192, 4096) == scene.read(0, 4096));
}

pub(super) fn unregister_waits() {
    let Some(scene) = Scene::new() else { return };
    let mut client = scene.device.ring(8).unwrap();
    scene.mark(0, LATE);
    publish(&mut client, &[scene.copy(7, 0, 8192, 4096)]);
    scene.region.unregister().unwrap();
    let found = client.pop().unwrap().expect("it was over when the region was gone");
    assert_eq!((found.user_data, found.outcome()), (7, Ok(4096)));
}

pub(super) fn close_waits() {
    if expected() == 0 {
        return;
    }
    let before = pins_left();
    // A process that ends in good order, without unregistering anything.
    let good = raw::in_child(|| {
        let scene = Scene::new().unwrap();
        let mut client = scene.device.ring(8).unwrap();
        scene.mark(0, LATE);
        publish(&mut client, &[scene.copy(7, 0, 8192, 4096)]);
        std::mem::forget(scene);
        true
    });
    assert!(good);
    assert_eq!(pins_left(), before);
}

pub(super) fn killed() {
    if expected() == 0 {
        return;
    }
    let before = pins_left();
    for late in [false, true, false, true] {
        raw::kill_when_ready(|ready| {
            let scene = Scene::new().unwrap();
            let mut client = scene.device.ring(64).unwrap();
            if late {
                scene.mark(0, LATE);
            }
            let half = BYTES / 2;
            let copy = scene.copy(0, 4096, half, half - 4096);
            publish(&mut client, &[scene.copy(1, 0, half, 4096)]);
            publish(&mut client, &[copy; 16]);
            ready();
            loop {
                next(&mut client);
                publish(&mut client, &[copy]);
            }
        });
        assert_eq!(pins_left(), before, "late: {late}");
    }
}

pub(super) fn hang() {
    let Some(scene) = Scene::new() else { return };
    let mut client = scene.device.ring(8).unwrap();
    scene.mark(0, HANG);
    let found = run(&mut client, &[scene.copy(0, 0, 8192, 4096)]);
    assert_eq!(found[&0].outcome(), Err(ETIMEDOUT));
    assert_eq!(scene.device.query().unwrap().channels, expected() - 1);
    // The other one works on, and nothing holds the memory.
    for number in 0..20 {
        let found = run(&mut client, &[scene.copy(number, 4096, 12288, 4096)]);
        assert_eq!(found[&number].outcome(), Ok(4096));
    }
    scene.region.unregister().unwrap();
}
