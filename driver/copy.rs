// SPDX-License-Identifier: GPL-2.0

//! Run one operation: choose who moves the bytes, and move them where it is the CPU.

use crate::{
    abi::{
        CompletionEntry, SubmissionEntry,
        command::access,
        completion,
        descriptor::{self, Descriptor, opcode},
        status::{EHOSTUNREACH, EINVAL, ENOMEM, EOPNOTSUPP},
        submission::flags,
    },
    channel::Channel,
    context::Context,
    flight::{Flight, Report, Waiter},
    helpers::{dma_engine_cond_resched, dma_engine_fill, dma_engine_move},
    limits,
    parts::{
        path::{self, Path},
        pattern,
        pieces::{Extents, Pieces},
    },
    query::NODE,
    region::Use,
};
use core::ptr::NonNull;
use kernel::{
    ffi::c_void,
    prelude::*,
    sync::atomic::{Atomic, Relaxed, Release},
};
use pin_init::stack_pin_init;

/// Pieces of a page at most that are copied before others may run.
const PIECES_AT_ONCE: usize = 256;

/// What became of an operation that was started.
pub(crate) enum Started {
    /// It is over.
    Over(CompletionEntry),
    /// A channel runs it.
    Flying,
}

/// Where the signal of an entry goes.
pub(crate) struct Signal {
    memory: Use,
    offset: u64,
}

/// Check an entry and run it to its end.
pub(crate) fn run(context: &Context, entry: &SubmissionEntry) -> CompletionEntry {
    stack_pin_init!(let waiter = Waiter::new());
    // SAFETY: The waiter is here until it was told.
    match unsafe { start(context, entry, Report::Waiter(NonNull::from(&*waiter))) } {
        Started::Over(completion) => completion,
        Started::Flying => {
            context.channels.issue();
            waiter.wait()
        }
    }
}

/// Check an entry and start it; what is queued on a channel must still be issued.
///
/// # Safety
///
/// Where it is flying afterwards, whom it reports to stays until it was told.
pub(crate) unsafe fn start(context: &Context, entry: &SubmissionEntry, report: Report) -> Started {
    // SAFETY: Promised by the caller.
    match unsafe { try_start(context, entry, report) } {
        Ok(None) => Started::Flying,
        Ok(Some(flags)) => Started::Over(CompletionEntry {
            flags,
            ..CompletionEntry::moved(entry.user_data, entry.desc.length)
        }),
        Err(errno) => Started::Over(CompletionEntry::failed(entry.user_data, errno)),
    }
}

/// Returns the flags of the completion where it is over.
///
/// # Safety
///
/// As [`start`].
unsafe fn try_start(
    context: &Context,
    entry: &SubmissionEntry,
    report: Report,
) -> Result<Option<u32>, i32> {
    entry.check(NODE).map_err(|rule| rule.errno())?;
    let desc = &entry.desc;
    if desc.src_node != NODE || desc.dst_node != NODE {
        return Err(EHOSTUNREACH);
    }
    let signal = signal_of(context, entry)?;
    let flags = match desc.opcode {
        opcode::READ | opcode::WRITE => {
            let ends = ends_of(context, desc)?;
            let Some(channel) = channel_for(context, desc, &ends)? else {
                let (source, destination) = (&ends.0, &ends.1);
                let (from, to) = (source.start(), destination.start());
                move_bytes((source, from), (destination, to), u64::from(desc.length));
                give_if(signal.as_ref(), entry);
                return Ok(Some(completion::flags::CPU));
            };
            // SAFETY: The channels are held while a file is open; the rest is promised.
            let flight =
                unsafe { Flight::new(entry, ends, signal, (&context.channels, channel), report) };
            flight.map_err(|_| ENOMEM)?.launch();
            return Ok(None);
        }
        opcode::FILL if desc.flags & descriptor::flags::CHANNEL != 0 => return Err(EOPNOTSUPP),
        opcode::FILL => fill(context, desc)?,
        _ => 0,
    };
    give_if(signal.as_ref(), entry);
    Ok(Some(flags))
}

/// The use of source and destination.
fn ends_of(context: &Context, desc: &Descriptor) -> Result<(Use, Use), i32> {
    let length = u64::from(desc.length);
    let regions = context.regions.lock();
    let source = regions.begin(desc.src_addr, length, access::READ)?;
    let destination = regions.begin(desc.dst_addr, length, access::WRITE)?;
    Ok((source, destination))
}

/// The channel that copies; `None`: the CPU does.
fn channel_for<'a>(
    context: &'a Context,
    desc: &Descriptor,
    (source, destination): &(Use, Use),
) -> Result<Option<&'a Channel>, i32> {
    let channel = context
        .channels
        .choose(|device| source.seen_by(device).is_some() && destination.seen_by(device).is_some());
    let from = source.first() + source.start();
    let to = destination.first() + destination.start();
    let facts = path::Facts {
        flags: desc.flags,
        reachable: channel.is_some(),
        bits: from | to | u64::from(desc.length),
        length: u64::from(desc.length),
        align: channel.map_or(1, |channel| u64::from(channel.align)),
        least: limits::channel_bytes(),
    };
    Ok(match path::choose(&facts)? {
        Path::Channel => channel,
        _ => None,
    })
}

/// Copy with the CPU. Both ranges lie in their regions.
pub(crate) fn move_bytes(source: (&Use, u64), destination: (&Use, u64), length: u64) {
    let pieces =
        Pieces::new((&**source.0, source.1), (&**destination.0, destination.1), length, u64::MAX);
    for (index, piece) in pieces.enumerate() {
        let (to, from) = (piece.to as *mut c_void, piece.from as *const c_void);
        // SAFETY: Both are ranges of pinned pages as the kernel sees them, and their uses live.
        unsafe { dma_engine_move(to, from, piece.length as usize) };
        breathe(index);
    }
}

fn fill(context: &Context, desc: &Descriptor) -> Result<u32, i32> {
    /// Memory that is never read.
    struct Nothing;
    impl Extents for Nothing {
        fn at(&self, _offset: u64) -> (u64, u64) {
            (0, u64::MAX)
        }
    }
    let length = u64::from(desc.length);
    let destination = context.regions.lock().begin(desc.dst_addr, length, access::WRITE)?;
    let to = (&*destination, destination.start());
    let mut filled = 0;
    for (index, piece) in Pieces::new((&Nothing, 0), to, length, u64::MAX).enumerate() {
        let words = pattern::from(desc.src_addr, filled);
        // SAFETY: A range of pinned pages as the kernel sees it, and its use lives.
        unsafe { dma_engine_fill(piece.to as *mut c_void, words, piece.length as usize) };
        filled += piece.length;
        breathe(index);
    }
    Ok(completion::flags::CPU)
}

fn breathe(index: usize) {
    if index % PIECES_AT_ONCE == PIECES_AT_ONCE - 1 {
        dma_engine_cond_resched();
    }
}

/// Look up where the signal goes before anything is moved.
fn signal_of(context: &Context, entry: &SubmissionEntry) -> Result<Option<Signal>, i32> {
    if entry.flags & flags::SIGNAL == 0 {
        return Ok(None);
    }
    let memory = context.regions.lock().begin(entry.signal_addr, 8, access::WRITE)?;
    let offset = memory.start();
    let (address, contiguous) = memory.at(offset);
    // A region may begin anywhere, so that a multiple of 8 in it is none in memory.
    if address % 8 != 0 || contiguous < 8 {
        return Err(EINVAL);
    }
    Ok(Some(Signal { memory, offset }))
}

fn give_if(signal: Option<&Signal>, entry: &SubmissionEntry) {
    if let Some(signal) = signal {
        give(signal, entry);
    }
}

/// Give the signal of an entry whose bytes were moved.
pub(crate) fn give(signal: &Signal, entry: &SubmissionEntry) {
    let (address, _) = signal.memory.at(signal.offset);
    // SAFETY: An aligned u64 in a pinned page as the kernel sees it, whose use lives; everybody
    // else uses atomics, or is user space.
    let word = unsafe { Atomic::<u64>::from_ptr(address as *mut u64) };
    if entry.flags & flags::SIGNAL_STORE != 0 {
        word.store(entry.signal_value, Release);
    } else {
        kernel::sync::barrier::smp_mb(kernel::sync::barrier::Full);
        word.add(entry.signal_value, Relaxed);
    }
}
