// SPDX-License-Identifier: GPL-2.0

//! Run one operation with the CPU.

use crate::{
    abi::address::offset_of,
    abi::{
        CompletionEntry,
        SubmissionEntry, //
        command::access,
        completion,
        descriptor::{
            self,
            Descriptor, //
            opcode,
        },
        status::{
            EHOSTUNREACH,
            EINVAL,
            EOPNOTSUPP, //
        },
        submission::flags,
    },
    context::Context,
    helpers::{
        dma_engine_cond_resched,
        dma_engine_fill,
        dma_engine_move, //
    },
    parts::{
        pattern,
        pieces::{
            Extents,
            Pieces, //
        }, //
    },
    query::NODE,
    region::Use, //
};
use kernel::{
    ffi::c_void,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed,
        Release, //
    }, //
};

/// Pieces of a page at most that are copied before others may run.
const PIECES_AT_ONCE: usize = 256;

/// Where the signal of an entry goes.
struct Signal {
    memory: Use,
    offset: u64,
}

/// Check an entry and run it.
pub(crate) fn run(context: &Context, entry: &SubmissionEntry) -> CompletionEntry {
    match try_run(context, entry) {
        Ok(flags) => {
            CompletionEntry { flags, ..CompletionEntry::moved(entry.user_data, entry.desc.length) }
        }
        Err(errno) => CompletionEntry::failed(entry.user_data, errno),
    }
}

/// Returns the flags of the completion.
fn try_run(context: &Context, entry: &SubmissionEntry) -> Result<u32, i32> {
    entry.check(NODE).map_err(|rule| rule.errno())?;
    let desc = &entry.desc;
    if desc.src_node != NODE || desc.dst_node != NODE {
        return Err(EHOSTUNREACH);
    }
    if desc.flags & descriptor::flags::CHANNEL != 0 {
        return Err(EOPNOTSUPP);
    }
    let signal = signal_of(context, entry)?;
    let used = match desc.opcode {
        opcode::READ | opcode::WRITE => copy(context, desc)?,
        opcode::FILL => fill(context, desc)?,
        _ => 0,
    };
    if let Some(signal) = signal {
        give(&signal, entry);
    }
    Ok(used)
}

fn copy(context: &Context, desc: &Descriptor) -> Result<u32, i32> {
    let length = u64::from(desc.length);
    let (source, destination) = {
        let regions = context.regions.lock();
        let source = regions.begin(desc.src_addr, length, access::READ)?;
        (source, regions.begin(desc.dst_addr, length, access::WRITE)?)
    };
    let pieces = Pieces::new(
        (&*source, offset_of(desc.src_addr)),
        (&*destination, offset_of(desc.dst_addr)),
        length,
        u64::MAX,
    );
    for (index, piece) in pieces.enumerate() {
        // SAFETY: Both are ranges of pinned pages as the kernel sees them, and their uses live.
        unsafe {
            dma_engine_move(
                piece.to as *mut c_void,
                piece.from as *const c_void,
                piece.length as usize,
            )
        };
        breathe(index);
    }
    Ok(completion::flags::CPU)
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
    let to = (&*destination, offset_of(desc.dst_addr));
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
    let offset = offset_of(entry.signal_addr);
    let (address, contiguous) = memory.at(offset);
    // A region may begin anywhere, so that a multiple of 8 in it is none in memory.
    if address % 8 != 0 || contiguous < 8 {
        return Err(EINVAL);
    }
    Ok(Some(Signal { memory, offset }))
}

fn give(signal: &Signal, entry: &SubmissionEntry) {
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
