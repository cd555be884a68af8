// SPDX-License-Identifier: GPL-2.0

//! A copy that a channel makes: from its start to its completion.

use crate::{
    abi::{
        CompletionEntry, SubmissionEntry, completion,
        descriptor::flags,
        status::{EIO, ENODEV, ETIMEDOUT},
    },
    channel::Channel,
    channels::Channels,
    copy::{Signal, give, move_bytes},
    helpers::{DmaResult, dma_engine_ratelimit, dma_engine_result},
    parts::pieces::Pieces,
    region::Use,
    ring::Ring,
};
use core::ptr::NonNull;
use kernel::{
    ffi::c_void,
    impl_has_work, new_condvar, new_spinlock_irq, new_work,
    prelude::*,
    sync::{
        CondVar, SpinLockIrq,
        atomic::{Atomic, Full, Relaxed},
    },
    time::{Delta, delay::fsleep},
    workqueue::{Work, WorkItem},
};

/// Who is told that it is over.
pub(crate) enum Report {
    /// A ring, which has a slot set aside for it.
    Ring(NonNull<Ring>),
    /// A thread that waits.
    Waiter(NonNull<Waiter>),
}

/// A thread that waits for one operation.
#[pin_data]
pub(crate) struct Waiter {
    #[pin]
    done: SpinLockIrq<Option<CompletionEntry>>,
    #[pin]
    over: CondVar,
}

impl Waiter {
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            done <- new_spinlock_irq!(None),
            over <- new_condvar!(),
        })
    }

    /// Wait for the completion.
    pub(crate) fn wait(&self) -> CompletionEntry {
        let mut done = self.done.lock();
        loop {
            if let Some(completion) = *done {
                return completion;
            }
            self.over.wait(&mut done);
        }
    }

    /// Under the lock, which the waiter must take before it goes away.
    fn tell(&self, completion: CompletionEntry) {
        let mut done = self.done.lock();
        *done = Some(completion);
        self.over.notify_all();
    }
}

/// How often a channel is tried where nothing else may copy, and how long to wait in between.
const TRIES: u32 = 5;
const PAUSE: Delta = Delta::from_millis(20);

/// No place on a roster.
const NO_PLACE: u32 = u32::MAX;

/// A copy under way.
///
/// # Invariants
///
/// `channel` is held and `channels` are there, and `report` waits, until the flight is over.
#[pin_data]
pub(crate) struct Flight {
    entry: SubmissionEntry,
    source: Use,
    destination: Use,
    signal: Option<Signal>,
    channels: NonNull<Channels>,
    channel: NonNull<Channel>,
    report: Report,
    /// Pieces that are not over, and one more while pieces are started.
    left: Atomic<u32>,
    /// Errno that it ends with; 0 for none.
    error: Atomic<i32>,
    /// The channel gave a piece up, or did not take it: the copy must be made once more.
    aborted: Atomic<bool>,
    by_cpu: Atomic<bool>,
    /// Place on the channel's roster, while it has one.
    place: Atomic<u32>,
    tries: Atomic<u32>,
    #[pin]
    work: Work<Flight>,
}

// SAFETY: A flight does not belong to a thread.
unsafe impl Send for Flight {}

impl_has_work! {
    impl HasWork<Self> for Flight { self.work }
}

impl WorkItem for Flight {
    type Pointer = Pin<KBox<Flight>>;

    fn run(this: Pin<KBox<Flight>>) {
        this.again();
    }
}

impl Flight {
    /// A flight that nothing was started of.
    ///
    /// # Safety
    ///
    /// The channel is one of the channels, which are there, and so is the ring or the waiter, until
    /// that has been told.
    pub(crate) unsafe fn new(
        entry: &SubmissionEntry,
        (source, destination): (Use, Use),
        signal: Option<Signal>,
        (channels, channel): (&Channels, &Channel),
        report: Report,
    ) -> Result<Pin<KBox<Self>>> {
        // INVARIANT: The caller promises it.
        let flight = pin_init!(Self {
            entry: *entry,
            source: source,
            destination: destination,
            signal: signal,
            channels: NonNull::from(channels),
            channel: NonNull::from(channel),
            report: report,
            left: Atomic::new(1),
            error: Atomic::new(0),
            aborted: Atomic::new(false),
            by_cpu: Atomic::new(false),
            place: Atomic::new(NO_PLACE),
            tries: Atomic::new(0),
            work <- new_work!("Flight::work"),
        });
        // Not on account of the caller: a limit of its group would fail a copy.
        KBox::pin_init(flight, GFP_KERNEL)
    }

    /// Start all pieces; what the channel does not take the CPU copies, where it may.
    pub(crate) fn launch(self: Pin<KBox<Self>>) {
        // SAFETY: It is not moved: only the pointer is.
        let raw = KBox::into_raw(unsafe { Pin::into_inner_unchecked(self) });
        // SAFETY: It was just leaked, and is there until its last piece is over, which is not
        // before the share of this function is given up below.
        let flight = unsafe { &*raw };
        // SAFETY: Held by the type invariant.
        let channel = unsafe { flight.channel.as_ref() };
        channel.board(NonNull::from(flight), |place| {
            match place {
                Some(place) => {
                    flight.place.store(place, Relaxed);
                    flight.start_pieces(channel, raw.cast());
                }
                None => flight.aborted.store(true, Relaxed),
            }
            // Before the channel can be given up: who strands a flight has it alone.
            // SAFETY: The share that it began with, given up once.
            unsafe { Self::piece_is_over(raw) };
        });
    }

    /// End a flight whose channel was given up.
    ///
    /// # Safety
    ///
    /// The flight was launched, and nobody else has a share of it any more.
    pub(crate) unsafe fn strand(flight: NonNull<Self>) {
        // SAFETY: It was leaked by `launch`, and the caller has it alone.
        let flight = unsafe { Pin::new_unchecked(KBox::from_raw(flight.as_ptr())) };
        flight.error.store(ETIMEDOUT, Relaxed);
        flight.end();
    }

    /// Whether nothing but a channel may copy.
    fn only_channel(&self) -> bool {
        self.entry.desc.flags & flags::CHANNEL != 0
    }

    /// Make the copy once more: nothing of it is under way.
    fn again(self: Pin<KBox<Self>>) {
        self.aborted.store(false, Relaxed);
        self.left.store(1, Relaxed);
        if !self.only_channel() {
            let desc = &self.entry.desc;
            let (from, to) = (self.source.start(), self.destination.start());
            move_bytes((&self.source, from), (&self.destination, to), desc.length.into());
            self.by_cpu.store(true, Relaxed);
            return self.end();
        }
        self.tries.add(1, Relaxed);
        if self.tries.load(Relaxed) > TRIES {
            self.error.store(ENODEV, Relaxed);
            return self.end();
        }
        fsleep(PAUSE);
        // SAFETY: There by the type invariant; this flight is not over, so its file is open.
        let channels = unsafe { self.channels.as_ref() };
        self.launch();
        // The file may be closed by now. Its module is not gone: it waits for this queue.
        channels.issue();
    }

    fn start_pieces(&self, channel: &Channel, raw: *mut c_void) {
        let desc = &self.entry.desc;
        let (from, to) = (self.source.start(), self.destination.start());
        let (Some(source), Some(destination)) =
            (self.source.seen_by(channel.device()), self.destination.seen_by(channel.device()))
        else {
            self.error.store(EIO, Relaxed);
            return;
        };
        let pieces = Pieces::new(
            (&source, self.source.first() + from),
            (&destination, self.destination.first() + to),
            u64::from(desc.length),
            u64::from(channel.longest),
        );
        let mut moved = 0;
        for piece in pieces {
            self.left.add(1, Relaxed);
            // SAFETY: The pieces are in what both regions have mapped for the device of the
            // channel; their uses live until the flight is over. `piece_done` is given the flight.
            if !unsafe { channel.start(&piece, piece_done, raw) } {
                // The share of this function is left, so this is not the last one.
                let _ = self.left.fetch_sub(1, Relaxed);
                if self.only_channel() {
                    self.aborted.store(true, Relaxed);
                    return;
                }
                let (source, destination) = (&self.source, &self.destination);
                move_bytes((source, from + moved), (destination, to + moved), piece.length);
                self.by_cpu.store(true, Relaxed);
            }
            moved += piece.length;
        }
    }

    /// # Safety
    ///
    /// `raw` is a flight, and the caller has a share of it, which ends here.
    unsafe fn piece_is_over(raw: *mut Self) {
        // SAFETY: There while there are shares. Full: what was done under one share comes before
        // the end of the flight.
        if unsafe { &*raw }.left.fetch_sub(1, Full) == 1 {
            // SAFETY: That was the last share; it was a pinned box before it was leaked.
            let flight = unsafe { Pin::new_unchecked(KBox::from_raw(raw)) };
            let place = flight.place.xchg(NO_PLACE, Relaxed);
            if place != NO_PLACE {
                // SAFETY: There by the type invariant.
                unsafe { flight.channel.as_ref() }.leave(place);
            }
            if flight.aborted.load(Relaxed) && flight.error.load(Relaxed) == 0 {
                // SAFETY: There by the type invariant.
                let channels = unsafe { flight.channels.as_ref() };
                channels.queue().enqueue(flight);
            } else {
                flight.end();
            }
        }
    }

    /// Give the signal, tell who waits, let the regions go: whoever unregisters one finds the
    /// completion posted.
    fn end(self: Pin<KBox<Self>>) {
        let entry = &self.entry;
        let error = self.error.load(Relaxed);
        let completion = if error != 0 {
            CompletionEntry::failed(entry.user_data, error)
        } else {
            if let Some(signal) = &self.signal {
                give(signal, entry);
            }
            let flags = if self.by_cpu.load(Relaxed) { completion::flags::CPU } else { 0 };
            CompletionEntry { flags, ..CompletionEntry::moved(entry.user_data, entry.desc.length) }
        };
        match &self.report {
            // SAFETY: There until it is told, by the type invariant.
            Report::Ring(ring) => unsafe { ring.as_ref() }.post(&[completion]),
            // SAFETY: As above.
            Report::Waiter(waiter) => unsafe { waiter.as_ref() }.tell(completion),
        }
        drop(self);
    }
}

/// A channel calls it when a piece is over, without a right to sleep.
///
/// # Safety
///
/// `raw` is the flight that the piece is of, and is given once a piece.
unsafe extern "C" fn piece_done(raw: *mut c_void, result: *const DmaResult) {
    let raw = raw.cast::<Flight>();
    // SAFETY: The flight is there: this piece has a share of it.
    let flight = unsafe { &*raw };
    // SAFETY: Held until the flight is over.
    let channel = unsafe { flight.channel.as_ref() };
    channel.is_over();
    // SAFETY: The channel gave it for the time of this call.
    match unsafe { dma_engine_result(result) } {
        0 => {}
        // It was not made, because another one failed.
        1 => flight.aborted.store(true, Relaxed),
        _ => {
            flight.error.store(EIO, Relaxed);
            if dma_engine_ratelimit() {
                let desc = &flight.entry.desc;
                pr_warn!(
                    "channel {}: a copy of {} bytes from {:#x} to {:#x} failed\n",
                    channel.names().0,
                    desc.length,
                    desc.src_addr,
                    desc.dst_addr
                );
            }
        }
    }
    // SAFETY: The share of this piece, which ends once.
    unsafe { Flight::piece_is_over(raw) };
}
