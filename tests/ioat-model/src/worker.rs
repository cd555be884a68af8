//! The thread of a channel: executes descriptors.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use crate::channel::{NEXT_ERROR, READ_ERROR, WRITE_ERROR};
use crate::fault::Fault;
use crate::memory::{Memory, Wild};
use crate::registers::Registers;

/// How long a late copy waits for another one.
const LATE: Duration = Duration::from_secs(1);

/// What the threads share.
#[derive(Debug)]
pub struct Shared {
    /// Registers.
    pub registers: Mutex<Registers>,
    /// Told when a channel may have work.
    pub work: Condvar,
    /// Memory of the guest. A copy holds it, so that nothing is unmapped under it.
    pub memory: RwLock<Memory>,
    /// Interrupt of each channel.
    pub interrupts: Mutex<Vec<Option<Arc<File>>>>,
    /// Copies made. Late ones wait for it to change.
    pub copies: Mutex<u64>,
    /// Told when a copy was made.
    pub copied: Condvar,
    /// Bytes copied.
    pub bytes: AtomicU64,
}

impl Shared {
    /// A device with so many channels.
    #[must_use]
    pub fn new(channels: u16) -> Self {
        Self {
            registers: Mutex::new(Registers::new(channels)),
            work: Condvar::new(),
            memory: RwLock::new(Memory::default()),
            interrupts: Mutex::new(vec![None; channels.into()]),
            copies: Mutex::new(0),
            copied: Condvar::new(),
            bytes: AtomicU64::new(0),
        }
    }
}

/// A descriptor as it lies in memory.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    bytes: u32,
    control: u32,
    source: u64,
    destination: u64,
    next: u64,
}

const INTERRUPT: u32 = 1 << 0;
const WRITE_STATUS: u32 = 1 << 3;
const NULL: u32 = 1 << 5;

impl Descriptor {
    fn read(memory: &Memory, at: u64) -> Result<Self, Wild> {
        let mut raw = [0; 32];
        memory.read(at, &mut raw)?;
        let word = |index: usize| {
            let bytes: [u8; 8] = std::array::from_fn(|byte| raw[index * 8 + byte]);
            u64::from_le_bytes(bytes)
        };
        Ok(Self {
            bytes: word(0) as u32,
            control: (word(0) >> 32) as u32,
            source: word(1),
            destination: word(2),
            next: word(3),
        })
    }
}

/// Start the thread of a channel; it runs as long as the process.
pub fn start(shared: &Arc<Shared>, channel: usize) {
    let shared = shared.clone();
    thread::spawn(move || {
        loop {
            let (at, resets) = wait(&shared, channel);
            let outcome = execute(&shared, at, || wait_for_reset(&shared, channel, resets));
            tell(&shared, channel, at, outcome, resets);
        }
    });
}

/// Wait for a descriptor.
fn wait(shared: &Shared, channel: usize) -> (u64, u32) {
    let mut registers = shared.registers.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(found) = registers.channels[channel].start() {
            return found;
        }
        registers = shared.work.wait(registers).unwrap_or_else(PoisonError::into_inner);
    }
}

/// A descriptor that was executed, or why the channel halts.
type Outcome = Result<(Descriptor, Option<Fault>), u32>;

fn execute(shared: &Shared, at: u64, hang: impl FnOnce()) -> Outcome {
    let lock = || shared.memory.read().unwrap_or_else(PoisonError::into_inner);
    let mut memory = lock();
    let descriptor = Descriptor::read(&memory, at).map_err(|wild| report(wild, NEXT_ERROR))?;
    let Descriptor { bytes, control, source, destination, .. } = descriptor;
    if control & NULL != 0 {
        return Ok((descriptor, None));
    }
    let mut head = [0; 24];
    let known = memory.read(source, &mut head).is_ok();
    let fault = if known { Fault::asked(&head) } else { None };
    let mut length = u64::from(bytes);
    match fault {
        Some(Fault::Late) => {
            drop(memory);
            wait_for_another(shared);
            memory = lock();
        }
        Some(Fault::Hang) => {
            drop(memory);
            hang();
            // Nobody is told: the channel was reset.
            return Err(READ_ERROR);
        }
        Some(Fault::Halt) => return Err(READ_ERROR),
        Some(Fault::Half) => length /= 2,
        Some(Fault::Silent) | None => {}
    }
    memory
        .copy(source, destination, length)
        .map_err(|(wild, reading)| report(wild, if reading { READ_ERROR } else { WRITE_ERROR }))?;
    *shared.copies.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    shared.copied.notify_all();
    shared.bytes.fetch_add(length, Ordering::Relaxed);
    if fault == Some(Fault::Half) { Err(WRITE_ERROR) } else { Ok((descriptor, fault)) }
}

/// Wait until a channel is reset.
fn wait_for_reset(shared: &Shared, channel: usize, resets: u32) {
    let mut registers = shared.registers.lock().unwrap_or_else(PoisonError::into_inner);
    while registers.channels[channel].resets() == resets {
        registers = shared.work.wait(registers).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Wait until another channel has made a copy.
fn wait_for_another(shared: &Shared) {
    let copies = shared.copies.lock().unwrap_or_else(PoisonError::into_inner);
    let before = *copies;
    drop(shared.copied.wait_timeout_while(copies, LATE, |copies| *copies == before));
}

/// A line for the test to find.
fn report(wild: Wild, error: u32) -> u32 {
    eprintln!("WILD ADDRESS {:#x}", wild.address);
    error
}

fn tell(shared: &Shared, index: usize, at: u64, outcome: Outcome, resets: u32) {
    let mut registers = shared.registers.lock().unwrap_or_else(PoisonError::into_inner);
    let channel = &mut registers.channels[index];
    let (current, write, interrupt) = match outcome {
        Ok((descriptor, fault)) => (
            channel.finish(at, descriptor.next, resets),
            descriptor.control & WRITE_STATUS != 0,
            descriptor.control & INTERRUPT != 0 && fault != Some(Fault::Silent),
        ),
        Err(error) => (channel.halt(error, resets), true, true),
    };
    if !current {
        return;
    }
    let (status, place) = (channel.status(), channel.completion);
    if write {
        let memory = shared.memory.read().unwrap_or_else(PoisonError::into_inner);
        if let Err(wild) = memory.publish(place, status) {
            report(wild, 0);
        }
    }
    let enabled = registers.interrupts();
    drop(registers);
    if interrupt && enabled {
        let interrupts = shared.interrupts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut eventfd) = interrupts.get(index).and_then(Option::as_deref) {
            // Full only where the guest has not looked for ages.
            let _ = eventfd.write_all(&1_u64.to_ne_bytes());
        }
    }
}
