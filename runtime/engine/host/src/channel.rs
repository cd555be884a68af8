//! Channels: worker threads that copy beside the calling thread, each behind a ring.
//!
//! The rings are those of the device's ABI, so this is the path that a copy takes to the kernel
//! module too: an entry, a worker that checks a copy of it against the regions, a completion.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use dma_engine_uapi::{Descriptor, SubmissionEntry, descriptor::opcode};
use stepccl_device::{Client, Doorbell, End, Push, Ring, RingError, Side};
use stepccl_engine::{Address, Completion, EngineError, Token};

use crate::HostError;
use crate::lane::Lane;
use crate::region::RegionTable;
use crate::worker::Worker;

/// Operations that a channel holds at once.
const ENTRIES: u32 = 64;

/// A copy that a channel has.
#[derive(Clone, Copy, Debug)]
struct Given {
    token: Token,
    src: Address,
    dst: Address,
    bytes: u64,
}

/// What became of it.
#[derive(Debug)]
struct Ended {
    given: Given,
    result: Result<u64, EngineError>,
}

/// All channels of an engine.
#[derive(Debug)]
pub(crate) struct Channels {
    regions: Arc<RegionTable>,
    channels: Vec<Channel>,
    next_token: u64,
}

impl Channels {
    /// Start `count` workers.
    pub(crate) fn start(
        count: u32,
        regions: &Arc<RegionTable>,
        own: &Lane,
    ) -> Result<Self, HostError> {
        let channels = (0..count).map(|number| Channel::start(number, regions, own));
        Ok(Self {
            channels: channels.collect::<Result<_, _>>()?,
            regions: regions.clone(),
            next_token: 1,
        })
    }

    /// Whether there are none.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }

    /// Give a copy, which was checked, to the channel with the fewest bytes to move; None where
    /// all are full.
    pub(crate) fn give(
        &mut self,
        src: Address,
        dst: Address,
        length: u32,
    ) -> Result<Option<Token>, EngineError> {
        let room = |channel: &&mut Channel| channel.given.len() < ENTRIES as usize;
        let least = self.channels.iter_mut().filter(room).min_by_key(|channel| channel.load_bytes);
        let Some(channel) = least else { return Ok(None) };
        let given = Given { token: Token(self.next_token), src, dst, bytes: length.into() };
        // Held before the worker can see the entry, until it is reaped.
        self.regions.hold(src);
        self.regions.hold(dst);
        if !channel.give(given, length)? {
            self.regions.release(src);
            self.regions.release(dst);
            return Ok(None);
        }
        self.next_token += 1;
        Ok(Some(given.token))
    }

    /// Append the completions that were posted; returns the bytes moved by them.
    pub(crate) fn reap(&mut self, completions: &mut Vec<Completion>) -> Result<u64, EngineError> {
        let mut moved = 0;
        for channel in &mut self.channels {
            while let Some(Ended { given, result }) = channel.reap()? {
                self.regions.release(given.src);
                self.regions.release(given.dst);
                moved += result.as_ref().copied().unwrap_or(0);
                completions.push(Completion { token: given.token, result });
            }
        }
        Ok(moved)
    }

    /// Whether `reap` would find something.
    #[inline]
    pub(crate) fn ready(&self) -> bool {
        self.channels.iter().any(Channel::ready)
    }

    /// End all workers; what they have not begun stays undone.
    pub(crate) fn stop(&mut self) {
        self.channels.clear();
    }
}

/// One worker and this side of its ring.
#[derive(Debug)]
struct Channel {
    // Dropped before the thread, which ends when it is gone.
    client: Client<End>,
    thread: Thread,
    /// Copies given and not reaped, oldest first; a worker does them in order.
    given: VecDeque<Given>,
    /// Their bytes.
    load_bytes: u64,
    /// Completions that the worker posted, and those reaped.
    posted: Arc<AtomicU64>,
    reaped: u64,
}

impl Channel {
    fn start(number: u32, regions: &Arc<RegionTable>, own: &Lane) -> Result<Self, HostError> {
        let failed = |message| HostError::Channel { channel: number, message };
        let (client, service) =
            Ring::in_process(ENTRIES).map_err(|error| failed(error.to_string()))?;
        let posted = Arc::new(AtomicU64::new(0));
        let worker =
            Worker { service, regions: regions.clone(), own: own.clone(), posted: posted.clone() };
        let thread = thread::Builder::new()
            .name(format!("stepccl-copy-{number}"))
            .spawn(move || worker.run())
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self {
            client,
            thread: Thread(Some(thread)),
            given: VecDeque::with_capacity(ENTRIES as usize),
            load_bytes: 0,
            posted,
            reaped: 0,
        })
    }

    /// False where the ring is full.
    fn give(&mut self, given: Given, length: u32) -> Result<bool, EngineError> {
        let entry = SubmissionEntry {
            desc: Descriptor {
                src_addr: given.src.raw(),
                dst_addr: given.dst.raw(),
                length,
                opcode: opcode::WRITE,
                ..Descriptor::default()
            },
            user_data: given.token.0,
            ..SubmissionEntry::default()
        };
        if self.client.push(&entry).map_err(|error| broken(&error))? == Push::Full {
            return Ok(false);
        }
        // From here on the entry may be under way, whatever the wake-up says.
        self.given.push_back(given);
        self.load_bytes += given.bytes;
        self.client.publish().map_err(|error| broken(&error))?;
        Ok(true)
    }

    /// The oldest copy and its end, where that was posted.
    fn reap(&mut self) -> Result<Option<Ended>, EngineError> {
        if self.given.is_empty() {
            return Ok(None);
        }
        // Asked before the look: what a worker posted before it ended is still read.
        let gone = self.client.memory().other_gone(Side::Client);
        let Some(completion) = self.client.pop().map_err(|error| broken(&error))? else {
            return if gone { Err(protocol("its worker ended".to_owned())) } else { Ok(None) };
        };
        self.reaped += 1;
        let given = match self.given.pop_front() {
            Some(given) if given.token.0 == completion.user_data => given,
            other => {
                let found = completion.user_data;
                return Err(protocol(format!("completion {found} where {other:?} is the oldest")));
            }
        };
        self.load_bytes -= given.bytes;
        let result = match completion.outcome() {
            Ok(moved) if u64::from(moved) == given.bytes => Ok(given.bytes),
            Ok(moved) => return Err(protocol(format!("{moved} bytes moved of {given:?}"))),
            Err(errno) => Err(EngineError::Failed { errno }),
        };
        Ok(Some(Ended { given, result }))
    }

    fn ready(&self) -> bool {
        self.posted.load(Ordering::Acquire) != self.reaped || self.thread.ended()
    }
}

/// A worker's thread, joined when dropped.
#[derive(Debug)]
struct Thread(Option<JoinHandle<()>>);

impl Thread {
    /// Whether it ended, which it should not before it is dropped.
    fn ended(&self) -> bool {
        self.0.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // A panic of the worker was told by `reap`.
            let _ = thread.join();
        }
    }
}

fn broken(error: &RingError) -> EngineError {
    protocol(error.to_string())
}

fn protocol(detail: String) -> EngineError {
    EngineError::Protocol { what: "channel", detail }
}
