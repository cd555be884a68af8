//! Slices in, slices out: the calls that wait, and so need no promise from the caller.

use stepccl_plan::{Collective, ReduceOp};

use crate::request::{AnyMessage, Message, Request};
use crate::{Call, Communicator, Element, Error, Memory, Outcome};

fn memory<T>(pointer: *mut T, length: usize) -> Memory {
    if length == 0 { Memory::None } else { Memory::Contiguous(pointer.cast()) }
}

/// The call of a collective on slices of whole blocks, on `rank` of `ranks`.
pub(crate) fn call<T: Element>(
    (rank, ranks): (u32, u32),
    collective: Collective,
    op: ReduceOp,
    input: Option<&[T]>,
    output: Option<&mut [T]>,
) -> Result<Call, Error> {
    let blocks_in = collective.input_blocks(rank, ranks) as usize;
    let blocks_out = collective.output_blocks(rank, ranks) as usize;
    let lengths = (input.map_or(0, <[T]>::len), output.as_ref().map_or(0, |o| o.len()));
    let count = lengths.0.checked_div(blocks_in).unwrap_or_else(|| lengths.1 / blocks_out.max(1));
    for (name, length, blocks) in
        [("input", lengths.0, blocks_in), ("output", lengths.1, blocks_out)]
    {
        if length != count * blocks {
            let rule = format!("must be {blocks} block(s) of {count}");
            return Err(Error::invalid(name, format_args!("{length} elements"), rule));
        }
    }
    Ok(Call {
        collective,
        dtype: T::DTYPE,
        op,
        premul: 1.0,
        count,
        input: input.map_or(Memory::None, |s| memory(s.as_ptr().cast_mut(), s.len())),
        output: output.map_or(Memory::None, |s| memory(s.as_mut_ptr(), s.len())),
    })
}

/// The call of an all_reduce in place.
pub(crate) fn all_reduce_in_place<T: Element>(data: &mut [T], op: ReduceOp) -> Call {
    let memory = memory(data.as_mut_ptr(), data.len());
    Call {
        collective: Collective::AllReduce,
        dtype: T::DTYPE,
        op,
        premul: 1.0,
        count: data.len(),
        input: memory.clone(),
        output: memory,
    }
}

/// The call of a broadcast in place, on `rank`.
pub(crate) fn broadcast<T: Element>(data: &mut [T], rank: u32, root: u32) -> Call {
    let memory = memory(data.as_mut_ptr(), data.len());
    Call {
        collective: Collective::Broadcast { root },
        dtype: T::DTYPE,
        op: ReduceOp::Sum,
        premul: 1.0,
        count: data.len(),
        input: if rank == root { memory.clone() } else { Memory::None },
        output: memory,
    }
}

impl Communicator {
    fn slices<T: Element>(
        &self,
        collective: Collective,
        op: ReduceOp,
        input: Option<&[T]>,
        output: Option<&mut [T]>,
    ) -> Outcome {
        let call = call((self.rank(), self.ranks()), collective, op, input, output)?;
        // SAFETY:
        // - The slices are borrowed, the output uniquely, until `run` returns, and their lengths
        //   are those of the blocks.
        unsafe { self.run(call, None) }
    }

    /// Reduce `input` of all ranks into every rank's `output`; both of the same length.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), like all calls below.
    pub fn all_reduce<T: Element>(&self, input: &[T], output: &mut [T], op: ReduceOp) -> Outcome {
        self.slices(Collective::AllReduce, op, Some(input), Some(output))
    }

    /// Reduce `data` of all ranks, in place.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn all_reduce_in_place<T: Element>(&self, data: &mut [T], op: ReduceOp) -> Outcome {
        let call = all_reduce_in_place(data, op);
        // SAFETY:
        // - The slice is borrowed uniquely until `run` returns; input and output are the same
        //   memory, which an all_reduce allows.
        unsafe { self.run(call, None) }
    }

    /// Send the root's `data` to every rank.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn broadcast<T: Element>(&self, data: &mut [T], root: u32) -> Outcome {
        let call = broadcast(data, self.rank(), root);
        // SAFETY:
        // - The slice is borrowed uniquely until `run` returns; input and output are the same
        //   memory, which a broadcast allows.
        unsafe { self.run(call, None) }
    }

    /// Reduce `input` of all ranks into the root's `output`; other ranks give `None`.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn reduce<T: Element>(
        &self,
        input: &[T],
        output: Option<&mut [T]>,
        root: u32,
        op: ReduceOp,
    ) -> Outcome {
        self.slices(Collective::Reduce { root }, op, Some(input), output)
    }

    /// Collect `input` of every rank, in order of rank.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn all_gather<T: Element>(&self, input: &[T], output: &mut [T]) -> Outcome {
        self.slices(Collective::AllGather, ReduceOp::Sum, Some(input), Some(output))
    }

    /// Reduce block `i` of every rank's `input` into the `output` of rank `i`.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn reduce_scatter<T: Element>(
        &self,
        input: &[T],
        output: &mut [T],
        op: ReduceOp,
    ) -> Outcome {
        self.slices(Collective::ReduceScatter, op, Some(input), Some(output))
    }

    /// Send block `i` of `input` to rank `i`.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn all_to_all<T: Element>(&self, input: &[T], output: &mut [T]) -> Outcome {
        self.slices(Collective::AllToAll, ReduceOp::Sum, Some(input), Some(output))
    }

    /// Collect `input` of every rank at the root; other ranks give `None`.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn gather<T: Element>(&self, input: &[T], output: Option<&mut [T]>, root: u32) -> Outcome {
        self.slices(Collective::Gather { root }, ReduceOp::Sum, Some(input), output)
    }

    /// Send block `i` of the root's `input` to rank `i`; other ranks give `None`.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn scatter<T: Element>(&self, input: Option<&[T]>, output: &mut [T], root: u32) -> Outcome {
        self.slices(Collective::Scatter { root }, ReduceOp::Sum, input, Some(output))
    }

    /// Wait until every rank has called it.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn barrier(&self) -> Outcome {
        self.slices::<u8>(Collective::Barrier, ReduceOp::Sum, None, None)
    }

    /// Send `data` to `peer`; returns when `data` may be used again.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn send<T: Element>(&self, data: &[T], peer: u32) -> Outcome {
        let memory = data.as_ptr().cast_mut().cast();
        let message = Message { peer, tag: 0, memory, bytes: size_of_val(data) };
        // SAFETY:
        // - The slice is borrowed until the call returns, and a send only reads it.
        unsafe { self.run(Request::Send(message), None) }
    }

    /// Receive `data` from `peer`, which must send as many bytes.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run); [`Error::MessageMismatch`](crate::Error::MessageMismatch) where the
    /// message has another size.
    pub fn recv<T: Element>(&self, data: &mut [T], peer: u32) -> Outcome {
        let bytes = size_of_val(data);
        let message = Message { peer, tag: 0, memory: data.as_mut_ptr().cast(), bytes };
        // SAFETY:
        // - The slice is borrowed uniquely until the call returns, and any bytes are a value of
        //   every element type.
        unsafe { self.run(Request::Recv(message), None) }
    }

    /// Receive `data` from whichever rank sends first; returns which rank that was.
    ///
    /// # Errors
    ///
    /// As [`run_any`](Self::run_any).
    pub fn recv_any<T: Element>(&self, data: &mut [T]) -> Result<u32, Error> {
        let bytes = size_of_val(data);
        let message = AnyMessage { tag: 0, memory: data.as_mut_ptr().cast(), bytes };
        // SAFETY:
        // - As in `recv`.
        unsafe { self.run_any(message, None) }
    }
}
