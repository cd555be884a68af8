//! Small collectives of a group that run as one: packed into scratch, run, unpacked.
//!
//! Block `b` of the large collective is block `b` of the small ones, one behind the other. So one
//! rule serves every collective, whatever it does with its blocks.

use std::ops::Range;
use std::sync::Arc;

use stepccl_engine::EngineError;
use stepccl_plan::Collective;

use crate::context::{Advance, Context, Failure};
use crate::request::Request;
use crate::scratch::{self, Scratch};
use crate::task::Task;
use crate::way::Way;
use crate::{Call, Memory};

/// Small collectives under way as one.
#[derive(Debug)]
pub(crate) struct PackedTask {
    calls: Calls,
    way: Way,
    /// Elements of a block of all together.
    count: usize,
    under_way: Option<(Box<Task>, Places)>,
    scratch: Scratch,
}

/// Some of the collectives of a list, which is not copied for them.
#[derive(Debug)]
pub(crate) struct Calls {
    pub list: Arc<Vec<Request>>,
    pub range: Range<usize>,
}

impl Calls {
    pub fn iter(&self) -> impl Iterator<Item = &Call> {
        self.list.get(self.range.clone()).into_iter().flatten().filter_map(Request::as_call)
    }
}

/// Bytes in the scratch at which input and output begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Places {
    input: usize,
    output: usize,
    bytes: usize,
}

impl Places {
    /// Where blocks of `block` bytes are, in place where the collective can be.
    fn new(collective: Collective, rank: u32, ranks: u32, block: usize) -> Self {
        let inputs = collective.input_blocks(rank, ranks) as usize * block;
        let outputs = collective.output_blocks(rank, ranks) as usize * block;
        let own = rank as usize * block;
        let (input, output) = match collective {
            Collective::AllReduce | Collective::Broadcast { .. } | Collective::Reduce { .. } => {
                (0, 0)
            }
            Collective::AllGather | Collective::Gather { .. } if outputs > 0 => (own, 0),
            Collective::ReduceScatter | Collective::Scatter { .. } if inputs > 0 => (0, own),
            _ => (0, inputs),
        };
        Self { input, output, bytes: (input + inputs).max(output + outputs) }
    }
}

impl PackedTask {
    /// Calls of the same collective, type and operation; `way` is that of one call of all
    /// their `count` elements.
    ///
    /// # Safety
    ///
    /// The memory of all calls must be valid, and untouched by others, until the task is done or
    /// `release` has returned.
    pub unsafe fn new(calls: Calls, count: usize, way: Way) -> Self {
        Self { calls, way, count, under_way: None, scratch: Scratch::default() }
    }

    fn start(&mut self, cx: &mut Context) -> Option<(Box<Task>, Places)> {
        let first = self.calls.iter().next()?;
        let (rank, ranks) = (cx.rank, cx.ranks);
        let block = self.count * first.dtype.size();
        let places = Places::new(first.collective, rank, ranks, block);
        self.scratch = std::mem::take(&mut cx.scratch);
        self.scratch.reserve(places.bytes);
        let base = self.scratch.base();
        let inputs = first.collective.input_blocks(rank, ranks);
        let outputs = first.collective.output_blocks(rank, ranks);
        let memory = |blocks: u32, offset: usize| {
            if blocks == 0 || block == 0 {
                Memory::None
            } else {
                Memory::Contiguous(base.wrapping_add(offset))
            }
        };
        let call = Call {
            count: self.count,
            input: memory(inputs, places.input),
            output: memory(outputs, places.output),
            ..first.clone()
        };
        for_parts(&self.calls, inputs, block, |call, b, offset, bytes| {
            if let Some(from) = call.input.block(b, bytes) {
                let to = base.wrapping_add(places.input + offset);
                // SAFETY:
                // - `new` was promised that the input is valid; the scratch was made long enough.
                unsafe { scratch::copy(from, to, bytes) };
            }
        });
        // SAFETY:
        // - The scratch belongs to this task, which keeps it until the collective is released.
        let task = unsafe { Task::of_call(call, self.way.clone(), cx.rank, cx.ranks) };
        Some((Box::new(task), places))
    }

    pub fn advance(&mut self, cx: &mut Context) -> Result<Advance, Failure> {
        if self.under_way.is_none() {
            self.under_way = self.start(cx);
        }
        let Some((task, places)) = &mut self.under_way else { return Ok(Advance::Done) };
        let advance = task.advance(cx)?;
        if advance == Advance::Done {
            let places = *places;
            self.under_way = None;
            self.unpack(cx, places);
            cx.scratch = std::mem::take(&mut self.scratch);
        }
        Ok(advance)
    }

    fn unpack(&mut self, cx: &Context, places: Places) {
        let Some(first) = self.calls.iter().next() else { return };
        let block = self.count * first.dtype.size();
        let outputs = first.collective.output_blocks(cx.rank, cx.ranks);
        let base = self.scratch.base();
        for_parts(&self.calls, outputs, block, |call, b, offset, bytes| {
            if let Some(to) = call.output.block(b, bytes) {
                let from = base.wrapping_add(places.output + offset);
                // SAFETY:
                // - `new` was promised that the output is valid; the scratch was made long enough.
                unsafe { scratch::copy(from, to, bytes) };
            }
        });
    }

    /// Give the memory back. Fails while a channel still uses it.
    pub fn release(&mut self, cx: &mut Context) -> Result<(), EngineError> {
        match &mut self.under_way {
            Some((task, _)) => task.release(cx),
            None => Ok(()),
        }
    }
}

/// Call `part` with each call, each of its `blocks` blocks, the offset of that part in the large
/// buffer of blocks of `block` bytes, and its length.
fn for_parts(
    calls: &Calls,
    blocks: u32,
    block: usize,
    mut part: impl FnMut(&Call, u32, usize, usize),
) {
    for b in 0..blocks {
        let mut offset = b as usize * block;
        for call in calls.iter() {
            let bytes = call.block_bytes();
            if bytes > 0 {
                part(call, b, offset, bytes);
            }
            offset += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_and_output_lie_in_the_scratch_and_are_apart_or_in_place() {
        for ranks in 1..=5 {
            for (rank, collective) in
                (0..ranks).flat_map(|rank| Collective::ALL.map(|collective| (rank, collective)))
            {
                let places = Places::new(collective, rank, ranks, 24);
                let inputs = collective.input_blocks(rank, ranks) as usize * 24;
                let outputs = collective.output_blocks(rank, ranks) as usize * 24;
                assert!(places.input + inputs <= places.bytes);
                assert!(places.output + outputs <= places.bytes);
                let base = std::ptr::without_provenance_mut::<u8>(4096);
                let memory = |len: usize, at: usize| match len {
                    0 => Memory::None,
                    _ => Memory::Contiguous(base.wrapping_add(at)),
                };
                let call = Call {
                    collective,
                    dtype: stepccl_plan::DType::U8,
                    op: stepccl_plan::ReduceOp::Sum,
                    premul: 1.0,
                    count: 24,
                    input: memory(inputs, places.input),
                    output: memory(outputs, places.output),
                };
                assert!(call.check(rank, ranks).is_ok(), "{collective} {rank}/{ranks} {places:?}");
            }
        }
    }
}
