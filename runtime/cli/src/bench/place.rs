//! Which memory is input and which is output, out of place and in place.

use std::collections::TryReserveError;

use stepccl::{Call, Collective, Memory, Message, Request};

use super::buffer::Buffer;
use super::case::Case;
use super::operation::Operation;
use super::values::{FACTOR, Values};

/// Where input and output stand in one memory, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shared {
    blocks: u32,
    input: u32,
    output: u32,
}

/// The memory of one rank's calls.
#[derive(Debug)]
pub(crate) struct Place {
    case: Case,
    rank: u32,
    count: usize,
    /// Apart from the output; `None` in place.
    input: Option<Buffer>,
    output: Buffer,
    /// The members of a group are one call.
    whole: bool,
    /// Blocks before input and output in their memory.
    offsets: (u32, u32),
}

impl Place {
    /// Input and output apart.
    ///
    /// # Errors
    ///
    /// Where the memory cannot be had.
    pub fn apart(case: Case, rank: u32, count: usize) -> Result<Self, TryReserveError> {
        let block = count * case.dtype.size();
        let inputs = case.operation.input_blocks(rank, case.ranks) as usize;
        let outputs = case.operation.output_blocks(rank, case.ranks) as usize;
        Ok(Self {
            case,
            rank,
            count,
            input: Some(Buffer::new(inputs * block)?),
            output: Buffer::new(outputs * block)?,
            whole: false,
            offsets: (0, 0),
        })
    }

    /// The other form: one memory for both; a group's is one call of its total size. `None` where
    /// the operation has no such form.
    ///
    /// # Errors
    ///
    /// Where the memory cannot be had.
    pub fn other(case: Case, rank: u32, count: usize) -> Result<Option<Self>, TryReserveError> {
        if let Operation::Group { .. } = case.operation {
            return Ok(Some(Self { whole: true, ..Self::apart(case, rank, count)? }));
        }
        let Some(shared) = shared(case.operation, rank, case.ranks) else { return Ok(None) };
        Ok(Some(Self {
            case,
            rank,
            count,
            input: None,
            output: Buffer::new(shared.blocks as usize * count * case.dtype.size())?,
            whole: false,
            offsets: (shared.input, shared.output),
        }))
    }

    /// The requests of a call, each run to its end before the next begins; several of one step run
    /// at once. Their pointers are void once this place is used in another way.
    pub fn steps(&mut self) -> Vec<Vec<Request>> {
        let (rank, ranks) = (self.rank, self.case.ranks);
        let bytes = self.count * self.case.dtype.size();
        let output = self.output.pointer();
        let input = self.input.as_mut().map_or(output, Buffer::pointer);
        let send = |peer, memory| Request::Send(Message { peer, tag: 0, memory, bytes });
        let recv = |peer, memory| Request::Recv(Message { peer, tag: 0, memory, bytes });
        match self.case.operation {
            Operation::Collective(collective) => vec![vec![self.call(collective).into()]],
            Operation::Group { members } => vec![self.members(members)],
            Operation::SendRecv => {
                let (next, before) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
                vec![vec![send(next, input), recv(before, output)]]
            }
            Operation::PingPong => match rank {
                0 => vec![vec![send(1, input)], vec![recv(1, output)]],
                1 => vec![vec![recv(0, output)], vec![send(0, output)]],
                _ => Vec::new(),
            },
        }
    }

    /// Elements of a block.
    pub const fn count(&self) -> usize {
        self.count
    }

    fn call(&mut self, collective: Collective) -> Call {
        let Case { dtype, op, ranks, .. } = self.case;
        let block = self.count * dtype.size();
        let output = self.output.pointer();
        let input = self.input.as_mut().map_or(output, Buffer::pointer);
        let memory = |base: *mut u8, offset: u32, blocks| match blocks {
            0 => Memory::None,
            _ => Memory::Contiguous(base.wrapping_add(offset as usize * block)),
        };
        Call {
            collective,
            dtype,
            op,
            premul: FACTOR,
            count: self.count,
            input: memory(input, self.offsets.0, collective.input_blocks(self.rank, ranks)),
            output: memory(output, self.offsets.1, collective.output_blocks(self.rank, ranks)),
        }
    }

    /// The all-reduces of a group, or the one of their total size.
    fn members(&mut self, members: u32) -> Vec<Request> {
        let Case { dtype, op, .. } = self.case;
        let (calls, count) =
            if self.whole { (1, self.count * members as usize) } else { (members, self.count) };
        let output = self.output.pointer();
        let input = self.input.as_mut().map_or(output, Buffer::pointer);
        let call = |i: u32| {
            let offset = i as usize * count * dtype.size();
            Call {
                collective: Collective::AllReduce,
                dtype,
                op,
                premul: FACTOR,
                count,
                input: Memory::Contiguous(input.wrapping_add(offset)),
                output: Memory::Contiguous(output.wrapping_add(offset)),
            }
        };
        (0..calls).map(|i| call(i).into()).collect()
    }

    /// Fresh input, and an output that is wrong everywhere else.
    pub fn fill(&mut self, values: &Values) {
        self.output.poison();
        let offset = self.offsets.0 as usize * self.count;
        let input = self.input.as_mut().unwrap_or(&mut self.output);
        values.fill(input, offset, self.rank);
    }

    /// Elements of the output that are wrong.
    pub fn wrong(&self, values: &Values) -> u64 {
        values.wrong(&self.output, self.offsets.1 as usize * self.count, self.rank)
    }
}

fn shared(operation: Operation, rank: u32, ranks: u32) -> Option<Shared> {
    let Operation::Collective(collective) = operation else { return None };
    let one = Shared { blocks: 1, input: 0, output: 0 };
    match collective {
        Collective::AllReduce | Collective::Broadcast { .. } | Collective::Reduce { .. } => {
            Some(one)
        }
        Collective::Gather { root } | Collective::Scatter { root } if rank != root => Some(one),
        Collective::AllGather | Collective::Gather { .. } => {
            Some(Shared { blocks: ranks, input: rank, output: 0 })
        }
        Collective::ReduceScatter | Collective::Scatter { .. } => {
            Some(Shared { blocks: ranks, input: 0, output: rank })
        }
        _ => None,
    }
}
