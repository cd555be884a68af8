// SPDX-License-Identifier: GPL-2.0

//! One hardware channel of a dmaengine provider.

use crate::{
    flight::Flight,
    helpers::{
        Callback, DmaChan, dma_engine_channel_align, dma_engine_channel_device,
        dma_engine_channel_name, dma_engine_channel_provider, dma_engine_device_direct,
        dma_engine_device_max_segment, dma_engine_device_node, dma_engine_get_device,
        dma_engine_issue, dma_engine_put_device, dma_engine_release_channel,
        dma_engine_request_channel, dma_engine_start,
    },
    limits,
    parts::{
        pieces::Piece,
        roster::{Place, Roster},
    },
};
use core::ptr::NonNull;
use kernel::{
    bindings,
    ffi::c_void,
    new_mutex, new_spinlock_irq,
    prelude::*,
    sync::{
        Mutex, SpinLockIrq,
        atomic::{Atomic, Relaxed},
    },
};

/// Flights of a channel at once; more are left to the CPU.
const PLACES: u32 = 4096;

/// Who is under way on a channel.
struct Aboard {
    roster: Roster,
    places: KVVec<Place<NonNull<Flight>>>,
}

/// What the thread that watches knows of a channel.
#[derive(Default)]
struct Seen {
    /// It was given up, and is held no more.
    dead: bool,
    /// Copies that were over when it looked last.
    over: u32,
    /// Milliseconds since that changed.
    still_ms: u32,
}

/// A channel that is held. Dropping it stops the channel and waits for its callbacks: it sleeps.
///
/// # Invariants
///
/// `inner` is held unless the gate says that the channel is dead. `device` is its device, referenced.
#[pin_data(PinnedDrop)]
pub(crate) struct Channel {
    inner: NonNull<DmaChan>,
    device: NonNull<bindings::device>,
    /// Longest copy of one descriptor.
    pub(crate) longest: u32,
    /// What source, destination and length must be a multiple of.
    pub(crate) align: u32,
    /// Copies that were started and are not over.
    busy: Atomic<u32>,
    /// Copies that are over, modulo 2^32.
    over: Atomic<u32>,
    /// Whether something is queued and not yet begun.
    queued: Atomic<bool>,
    dead: Atomic<bool>,
    /// Held by whoever gives the channel something, so that it is not given up meanwhile.
    #[pin]
    gate: Mutex<Seen>,
    #[pin]
    aboard: SpinLockIrq<Aboard>,
}

// SAFETY: A channel may be used by any thread; its provider has its own locks.
unsafe impl Send for Channel {}
// SAFETY: As for `Send`.
unsafe impl Sync for Channel {}

impl Channel {
    /// The next channel that is free; `None` where there is none.
    pub(crate) fn request() -> Result<Option<Pin<KBox<Self>>>> {
        let Some(inner) = NonNull::new(dma_engine_request_channel()) else {
            return Ok(None);
        };
        let made = Self::of(inner);
        if made.is_err() {
            // SAFETY: The channel is held, was not used, and is not used again.
            unsafe { dma_engine_release_channel(inner.as_ptr()) };
        }
        made.map(Some)
    }

    fn of(inner: NonNull<DmaChan>) -> Result<Pin<KBox<Self>>> {
        let raw = inner.as_ptr();
        let mut places = KVVec::with_capacity(PLACES as usize, GFP_KERNEL)?;
        for index in 0..PLACES {
            places.push(Roster::place(index), GFP_KERNEL)?;
        }
        // SAFETY: The channel is held.
        let device = NonNull::new(unsafe { dma_engine_channel_device(raw) }).ok_or(ENODEV)?;
        let channel = KBox::pin_init(
            pin_init!(Self {
                inner: inner,
                device: device,
                // SAFETY: The device lives as long as the channel is held.
                longest: unsafe { dma_engine_device_max_segment(device.as_ptr()) }.max(1),
                // SAFETY: The channel is held.
                align: unsafe { dma_engine_channel_align(raw) },
                busy: Atomic::new(0),
                over: Atomic::new(0),
                queued: Atomic::new(false),
                dead: Atomic::new(false),
                gate <- new_mutex!(Seen::default()),
                aboard <- new_spinlock_irq!(Aboard { roster: Roster::new(), places }),
            }),
            GFP_KERNEL,
        );
        channel.inspect(|_| {
            // SAFETY: The device is there. The drop of the channel puts it.
            unsafe { dma_engine_get_device(device.as_ptr()) };
        })
    }

    /// The device that memory is mapped for.
    pub(crate) fn device(&self) -> NonNull<bindings::device> {
        self.device
    }

    /// Whether it can take memory for long without bounce buffers and cache flushes.
    pub(crate) fn is_direct(&self) -> bool {
        // SAFETY: The device is referenced.
        unsafe { dma_engine_device_direct(self.device.as_ptr()) }
    }

    /// NUMA node, or -1.
    pub(crate) fn node(&self) -> i32 {
        // SAFETY: The device is referenced.
        unsafe { dma_engine_device_node(self.device.as_ptr()) }
    }

    /// Name of the channel and of its driver, of a channel that is not dead.
    pub(crate) fn names(&self) -> (&CStr, &CStr) {
        let raw = self.inner.as_ptr();
        // SAFETY: The channel is held; its name and that of its driver end with a zero and live as
        // long as it is.
        unsafe {
            (
                CStr::from_char_ptr(dma_engine_channel_name(raw)),
                CStr::from_char_ptr(dma_engine_channel_provider(raw)),
            )
        }
    }

    /// Copies under way.
    pub(crate) fn busy(&self) -> u32 {
        self.busy.load(Relaxed)
    }

    /// Whether it was given up.
    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Relaxed)
    }

    /// Let a flight board and start its pieces, while the channel cannot be given up; false where it
    /// is dead or full.
    pub(crate) fn board(&self, flight: NonNull<Flight>, start: impl FnOnce(Option<u32>)) {
        let gate = self.gate.lock();
        let place = if gate.dead {
            None
        } else {
            let mut aboard = self.aboard.lock();
            let Aboard { roster, places } = &mut *aboard;
            roster.board(places, flight)
        };
        start(place);
    }

    /// A flight leaves its place.
    pub(crate) fn leave(&self, place: u32) {
        let mut aboard = self.aboard.lock();
        let Aboard { roster, places } = &mut *aboard;
        let _ = roster.leave(places, place);
    }

    /// Queue a copy; false where the channel takes none now.
    ///
    /// # Safety
    ///
    /// Called in [`Self::board`] of a flight that has a place. The addresses of the piece are mapped
    /// for the device of this channel, and stay so until the callback. `parameter` is what `callback`
    /// needs, which then comes once, unless the channel is given up before.
    pub(crate) unsafe fn start(
        &self,
        piece: &Piece,
        callback: Callback,
        parameter: *mut c_void,
    ) -> bool {
        self.busy.add(1, Relaxed);
        // SAFETY: The channel is held: the gate is. The rest is promised by the caller.
        let taken = unsafe {
            dma_engine_start(
                self.inner.as_ptr(),
                piece.to,
                piece.from,
                piece.length as usize,
                callback,
                parameter,
            )
        };
        if taken {
            self.queued.store(true, Relaxed);
        } else {
            self.is_over();
        }
        taken
    }

    /// One copy is over.
    pub(crate) fn is_over(&self) {
        let _ = self.busy.fetch_sub(1, Relaxed);
        self.over.add(1, Relaxed);
    }

    /// Begin what was queued.
    pub(crate) fn issue(&self) {
        if self.queued.load(Relaxed) {
            let gate = self.gate.lock();
            if !gate.dead && self.queued.xchg(false, Relaxed) {
                // SAFETY: The channel is held: it is not dead, and the gate is held.
                unsafe { dma_engine_issue(self.inner.as_ptr()) };
            }
        }
    }

    /// Called every `period_ms`: give the channel up where nothing of it was over for too long.
    pub(crate) fn look(&self, period_ms: u32) {
        let mut gate = self.gate.lock();
        let over = self.over.load(Relaxed);
        if gate.dead || self.busy() == 0 || over != gate.over {
            gate.over = over;
            gate.still_ms = 0;
            return;
        }
        gate.still_ms = gate.still_ms.saturating_add(period_ms);
        if gate.still_ms < limits::op_timeout_ms() {
            return;
        }
        pr_err!(
            "channel {}: no answer for {} ms with {} copies under way; it is given up\n",
            self.names().0,
            gate.still_ms,
            self.busy()
        );
        gate.dead = true;
        self.dead.store(true, Relaxed);
        // Whoever waits for the gate finds the channel dead; callbacks do not take it.
        drop(gate);
        // SAFETY: It was held until now, and nobody starts anything on a dead channel. It touches no
        // memory and calls nobody from here on.
        unsafe { dma_engine_release_channel(self.inner.as_ptr()) };
        while let Some(flight) = self.any_aboard() {
            // SAFETY: It had a place: it is there, its own share was given up before the gate was,
            // and no callback comes any more.
            unsafe { Flight::strand(flight) };
        }
        self.busy.store(0, Relaxed);
    }

    fn any_aboard(&self) -> Option<NonNull<Flight>> {
        let mut aboard = self.aboard.lock();
        let Aboard { roster, places } = &mut *aboard;
        roster.leave_any(places)
    }
}

#[pinned_drop]
impl PinnedDrop for Channel {
    fn drop(self: Pin<&mut Self>) {
        if !self.gate.lock().dead {
            // SAFETY: Held by the type invariant, and not used again.
            unsafe { dma_engine_release_channel(self.inner.as_ptr()) };
        }
        // SAFETY: Referenced by the type invariant, and not used again.
        unsafe { dma_engine_put_device(self.device.as_ptr()) };
    }
}
