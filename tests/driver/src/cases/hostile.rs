//! Processes that call anything with anything, scribble over their rings, and are killed meanwhile.

use std::os::fd::{AsFd, BorrowedFd};

use dma_engine_uapi::descriptor::opcode;
use dma_engine_uapi::{
    AttachEventfd, Enter, Export, Import, RegisterMemory, RingSetup, SubmissionEntry, Submit,
    Unregister, address, ioctl,
};
use nix::sys::eventfd::EventFd;
use stepccl_device::{Descriptor, Device, RingMemory, Word};

use super::process::pins_left;
use super::raw::{self, Anonymous};
use crate::conformance::{no_op, run};
use crate::noise::Noise;

const BYTES: u64 = 1 << 18;

/// What one process plays with.
struct Player {
    noise: Noise,
    memory: Anonymous,
    regions: Vec<u32>,
    files: Vec<i32>,
    eventfd: EventFd,
}

impl Player {
    fn new(seed: u64) -> Self {
        Self {
            noise: Noise::from_seed(seed),
            memory: Anonymous::new(BYTES as usize, true),
            regions: vec![0],
            files: vec![-1],
            eventfd: EventFd::new().unwrap(),
        }
    }

    /// A value that is often good, sometimes near it, and sometimes anything.
    fn value(&mut self, good: u64) -> u64 {
        match self.noise.below(16) {
            0 => self.noise.next(),
            1 => good.wrapping_add(1),
            2 => 0,
            3 => 1 << self.noise.below(64),
            _ => good,
        }
    }

    fn address(&mut self) -> u64 {
        let region = self.regions[self.noise.below(self.regions.len() as u64) as usize];
        let offset = self.noise.below(BYTES);
        let good = address::address(region, offset).unwrap_or(0);
        self.value(good)
    }

    fn entry(&mut self) -> SubmissionEntry {
        let code = [opcode::READ, opcode::WRITE, opcode::NOP, opcode::FENCE, opcode::FILL];
        let code = code[self.noise.below(5) as usize];
        let moves = !matches!(code, opcode::NOP | opcode::FENCE);
        let length = self.noise.below(30_000);
        let [src_addr, dst_addr] = if moves { [self.address(), self.address()] } else { [0, 0] };
        let signals = self.noise.below(4) == 0;
        SubmissionEntry {
            desc: Descriptor {
                src_addr,
                dst_addr,
                length: if moves { self.value(length) as u32 } else { 0 },
                src_node: (self.value(0) >> 60) as u16,
                opcode: self.value(code.into()) as u8,
                flags: if moves { self.noise.below(3) as u8 } else { 0 },
                ..Descriptor::default()
            },
            user_data: self.noise.next(),
            signal_addr: if signals { self.address() & !7 } else { 0 },
            signal_value: if signals { self.noise.next() } else { 0 },
            flags: (self.noise.below(4) as u32)
                | if signals { 4 << self.noise.below(2) } else { 0 },
            reserved: 0,
        }
    }

    /// One call; errors are what it is about.
    fn call(&mut self, fd: BorrowedFd<'_>) {
        match self.noise.below(10) {
            0 => {
                let (address, length) = (self.memory.address(), 1 + self.noise.below(BYTES));
                let mut argument = RegisterMemory {
                    size: self.value(40) as u32,
                    address: self.value(address),
                    length: self.value(length),
                    access: self.value(3) as u32,
                    ..RegisterMemory::default()
                };
                if raw::command(fd, ioctl::REGISTER_MEMORY, &mut argument).is_ok() {
                    self.regions.push(argument.region);
                }
            }
            1 => {
                let index = self.noise.below(self.regions.len() as u64) as usize;
                let region = self.value(self.regions[index].into()) as u32;
                let mut argument = Unregister { size: 16, region, ..Unregister::default() };
                let _ = raw::command(fd, ioctl::UNREGISTER, &mut argument);
            }
            2 => {
                let region = self.regions[self.noise.below(self.regions.len() as u64) as usize];
                let [offset, length] = [0; 2].map(|_: u64| self.noise.below(BYTES));
                let mut argument = Export {
                    size: 40,
                    region,
                    access: self.value(3) as u32,
                    offset,
                    length: self.value(length),
                    ..Export::default()
                };
                let made = raw::command(fd, ioctl::EXPORT, &mut argument).is_ok();
                if made && self.files.len() < 200 {
                    self.files.push(argument.fd);
                } else if made {
                    drop(raw::own(argument.fd));
                }
            }
            3 => {
                let file = self.files[self.noise.below(self.files.len() as u64) as usize];
                let access = self.value(3) as u32;
                let mut argument = Import { size: 32, fd: file, access, ..Import::default() };
                if raw::command(fd, ioctl::IMPORT, &mut argument).is_ok() {
                    self.regions.push(argument.region);
                }
            }
            4..=6 => {
                let mut argument =
                    Submit { size: 48, desc: self.entry().desc, ..Submit::default() };
                let _ = raw::command(fd, ioctl::SUBMIT, &mut argument);
            }
            7 => {
                use std::os::fd::AsRawFd;
                let mut argument = AttachEventfd {
                    size: 16,
                    fd: self.value(self.eventfd.as_fd().as_raw_fd() as u64) as i32,
                    flags: self.value(1) as u32,
                    ..AttachEventfd::default()
                };
                let _ = raw::command(fd, ioctl::ATTACH_EVENTFD, &mut argument);
            }
            8 => {
                let mut argument = RingSetup { size: 88, sq_entries: 8, ..RingSetup::default() };
                let _ = raw::command(fd, ioctl::RING_SETUP, &mut argument);
            }
            _ => {
                let number = ioctl::QUERY + self.noise.below(14) as u32;
                let address = self.value(self.memory.address()) as usize;
                let _ = raw::ioctl(fd, number, address);
            }
        }
    }

    /// A device from open to close, with a ring that is used and abused.
    fn life(&mut self, calls: u64) {
        let device = Device::open().unwrap();
        self.regions.truncate(1);
        let client = device.ring(8).unwrap();
        let ring = client.memory().mapped();
        let mut tail = 0;
        for _ in 0..calls {
            for _ in 0..self.noise.below(4) {
                self.call(device.as_fd());
            }
            let count = self.noise.below(9) as u32;
            for _ in 0..count {
                let words = self.entry().to_words();
                ring.write_submission(tail % 8, words).unwrap();
                tail = tail.wrapping_add(1);
            }
            // Mostly an honest client; a lie ends the ring, so it is a seldom one.
            let done = ring.load_acquire(Word::CqTail).unwrap();
            ring.store_release(Word::CqHead, done).unwrap();
            let lie = if self.noise.below(200) == 0 { self.noise.next() as u32 } else { 0 };
            ring.store_release(Word::SqTail, tail.wrapping_add(lie)).unwrap();
            let min_complete = self.noise.below(4) as u32;
            let mut enter = Enter {
                size: 32,
                to_submit: u32::MAX,
                min_complete,
                timeout_ns: if min_complete > 0 { 1_000_000 } else { 0 },
                ..Enter::default()
            };
            let _ = raw::command(device.as_fd(), ioctl::ENTER, &mut enter);
            tail = ring.load_acquire(Word::SqHead).unwrap();
        }
        for file in self.files.drain(1..) {
            drop(raw::own(file));
        }
    }
}

/// Many lives, all ended in good order or by a signal; nothing stays behind.
pub(super) fn anything_goes() {
    let mut noise = Noise::fresh();
    let before = pins_left();
    for round in 0..12 {
        let seed = noise.next();
        if round % 2 == 0 {
            assert!(raw::in_child(|| {
                let mut player = Player::new(seed);
                for _ in 0..4 {
                    player.life(150);
                }
                true
            }));
        } else {
            raw::kill_when_ready(|ready| {
                let mut player = Player::new(seed);
                player.life(20 + seed % 100);
                ready();
                loop {
                    player.life(50);
                }
            });
        }
        assert_eq!(pins_left(), before, "round {round}");
    }
    // The next user is not affected.
    let mut client = Device::open().unwrap().ring(4).unwrap();
    run(&mut client, &[no_op(1)]);
}
