//! Collectives whose blocks differ in length, made of collectives and messages.

use stepccl_plan::{Collective, DType, ReduceOp};

use crate::request::{Message, Request};
use crate::{Call, Error, Memory};

/// Most bytes of all blocks together: what one region can address.
const MAX_BYTES: u64 = 1 << 40;
/// Tag of the messages of an uneven all_to_all.
const TAG: i32 = 0x5545_4132;

/// An uneven collective, and how long its blocks are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Uneven {
    /// Every rank gets every input, in order of rank.
    AllGather {
        /// Elements of each rank's input; the same list on every rank.
        counts: Box<[usize]>,
    },
    /// Rank i gets the reduction of block i of all inputs.
    ReduceScatter {
        /// Elements of each block; the same list on every rank.
        counts: Box<[usize]>,
    },
    /// Rank i gets block i of every input, in order of rank.
    AllToAll {
        /// Elements that this rank sends to each rank.
        send: Box<[usize]>,
        /// Elements that each rank sends to this one.
        receive: Box<[usize]>,
    },
}

/// An uneven collective with its buffers.
#[derive(Clone, Debug)]
pub struct UnevenCall {
    /// Which collective, with the lengths of the blocks.
    pub uneven: Uneven,
    /// Type of the elements.
    pub dtype: DType,
    /// How contributions are combined; ignored where nothing is combined.
    pub op: ReduceOp,
    /// As [`Call::premul`].
    pub premul: f64,
    /// Input blocks of this rank: one behind the other, or each somewhere else.
    pub input: Memory,
    /// Output blocks of this rank, likewise.
    pub output: Memory,
}

/// What an operation is made of.
#[derive(Debug)]
pub(crate) enum Piece {
    Request(Request),
    /// Copy these bytes within this rank.
    Local {
        from: *mut u8,
        to: *mut u8,
        bytes: usize,
    },
}

// SAFETY:
// - The pointers are numbers here, as those of `Message` are.
unsafe impl Send for Piece {}

/// Blocks of one side: where each begins, and how long it is.
struct Blocks<'a> {
    memory: &'a Memory,
    starts: Vec<usize>,
    bytes: Vec<usize>,
}

impl<'a> Blocks<'a> {
    fn new(
        name: &'static str,
        memory: &'a Memory,
        counts: &[usize],
        size: usize,
    ) -> Result<Self, Error> {
        let mut starts = Vec::with_capacity(counts.len());
        let mut bytes = Vec::with_capacity(counts.len());
        let mut end = 0u64;
        for (rank, count) in counts.iter().enumerate() {
            let too_long = || {
                let value = format!("{count} elements in block {rank}");
                let rule = "all blocks together must be at most 2^40 bytes";
                Error::invalid("counts", value, rule)
            };
            let block = (*count as u64).checked_mul(size as u64).ok_or_else(too_long)?;
            starts.push(end as usize);
            end = end.checked_add(block).filter(|end| *end <= MAX_BYTES).ok_or_else(too_long)?;
            bytes.push(block as usize);
        }
        let blocks = Self { memory, starts, bytes };
        blocks.check(name)?;
        Ok(blocks)
    }

    fn check(&self, name: &'static str) -> Result<(), Error> {
        if let Memory::Blocks(list) = self.memory
            && list.len() != self.bytes.len()
        {
            let value = format_args!("{} blocks", list.len());
            let rule = format!("must be one pointer, or one for each of {}", self.bytes.len());
            return Err(Error::invalid(name, value, rule));
        }
        for (block, bytes) in self.bytes.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
            let at = self.at(block);
            if at.is_null() {
                let value = format_args!("null for block {block} of {bytes} bytes");
                return Err(Error::invalid(name, value, "must point to memory"));
            }
        }
        Ok(())
    }

    /// First byte of a block; null where there is none.
    fn at(&self, block: usize) -> *mut u8 {
        match self.memory {
            Memory::None => std::ptr::null_mut(),
            Memory::Contiguous(base) if base.is_null() => *base,
            Memory::Contiguous(base) => base.wrapping_add(self.starts[block]),
            Memory::Blocks(list) => list[block],
        }
    }

    fn memory(&self, block: usize) -> Memory {
        match self.bytes[block] {
            0 => Memory::None,
            _ => Memory::Contiguous(self.at(block)),
        }
    }

    /// Ranges of bytes that are not empty.
    fn ranges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let range = |block| (self.at(block).addr(), self.at(block).addr() + self.bytes[block]);
        (0..self.bytes.len()).filter(|b| self.bytes[*b] > 0).map(range)
    }
}

impl UnevenCall {
    /// Name as users write it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self.uneven {
            Uneven::AllGather { .. } => "all_gather",
            Uneven::ReduceScatter { .. } => "reduce_scatter",
            Uneven::AllToAll { .. } => "all_to_all",
        }
    }

    /// Refuse a call that cannot be right; what it is made of otherwise, in the same order on
    /// every rank.
    pub(crate) fn pieces(&self, rank: u32, ranks: u32) -> Result<Vec<Piece>, Error> {
        let lists = |name: &'static str, counts: &[usize]| {
            if counts.len() == ranks as usize {
                return Ok(());
            }
            let rule = format!("must be {ranks}, one for each rank");
            Err(Error::invalid(name, format_args!("{} counts", counts.len()), rule))
        };
        match &self.uneven {
            Uneven::AllGather { counts } => {
                lists("counts", counts)?;
                self.all_gather(counts, rank)
            }
            Uneven::ReduceScatter { counts } => {
                lists("counts", counts)?;
                self.reduce_scatter(counts, rank)
            }
            Uneven::AllToAll { send, receive } => {
                lists("send counts", send)?;
                lists("receive counts", receive)?;
                self.all_to_all(send, receive, rank)
            }
        }
    }

    fn call(&self, collective: Collective, count: usize, input: Memory, output: Memory) -> Piece {
        let (dtype, op, premul) = (self.dtype, self.op, self.premul);
        let call = Call { collective, dtype, op, premul, count, input, output };
        Piece::Request(Request::Collective(call))
    }

    fn even(&self, collective: Collective, count: usize) -> Vec<Piece> {
        vec![self.call(collective, count, self.input.clone(), self.output.clone())]
    }

    fn all_gather(&self, counts: &[usize], rank: u32) -> Result<Vec<Piece>, Error> {
        if counts.iter().all(|c| *c == counts[0]) {
            return Ok(self.even(Collective::AllGather, counts[0]));
        }
        let (me, size) = (rank as usize, self.dtype.size());
        let input = Blocks::new("input", &self.input, &counts[me..=me], size)?;
        let output = Blocks::new("output", &self.output, counts, size)?;
        let in_place = input.at(0) == output.at(me);
        refuse_overlap(&input, &output, |_, block| in_place && block == me)?;
        let broadcast = |(root, count): (usize, &usize)| {
            let input = if root == me { input.memory(0) } else { Memory::None };
            let root_rank = Collective::Broadcast { root: root as u32 };
            self.call(root_rank, *count, input, output.memory(root))
        };
        Ok(counts.iter().enumerate().filter(|(_, count)| **count > 0).map(broadcast).collect())
    }

    fn reduce_scatter(&self, counts: &[usize], rank: u32) -> Result<Vec<Piece>, Error> {
        if counts.iter().all(|c| *c == counts[0]) {
            return Ok(self.even(Collective::ReduceScatter, counts[0]));
        }
        let (me, size) = (rank as usize, self.dtype.size());
        let input = Blocks::new("input", &self.input, counts, size)?;
        let output = Blocks::new("output", &self.output, &counts[me..=me], size)?;
        let in_place = input.at(me) == output.at(0);
        refuse_overlap(&input, &output, |block, _| in_place && block == me)?;
        let reduce = |(root, count): (usize, &usize)| {
            let output = if root == me { output.memory(0) } else { Memory::None };
            self.call(Collective::Reduce { root: root as u32 }, *count, input.memory(root), output)
        };
        Ok(counts.iter().enumerate().filter(|(_, count)| **count > 0).map(reduce).collect())
    }

    /// Never the even collective: no rank knows the counts of all the others.
    fn all_to_all(
        &self,
        send: &[usize],
        receive: &[usize],
        rank: u32,
    ) -> Result<Vec<Piece>, Error> {
        let (me, size) = (rank as usize, self.dtype.size());
        let input = Blocks::new("input", &self.input, send, size)?;
        let output = Blocks::new("output", &self.output, receive, size)?;
        if send[me] != receive[me] {
            let value =
                format_args!("{} elements to itself, {} from itself", send[me], receive[me]);
            return Err(Error::invalid("counts", value, "must be the same"));
        }
        refuse_overlap(&input, &output, |_, _| false)?;
        let mut pieces = Vec::with_capacity(2 * send.len());
        // Each rank begins with the next one, so that not all send to the same.
        for on in 1..send.len() {
            let (to, from) = ((me + on) % send.len(), (me + send.len() - on) % send.len());
            let message = |peer: usize, blocks: &Blocks<'_>| Message {
                peer: peer as u32,
                tag: TAG,
                memory: blocks.at(peer),
                bytes: blocks.bytes[peer],
            };
            if send[to] > 0 {
                pieces.push(Piece::Request(Request::Send(message(to, &input))));
            }
            if receive[from] > 0 {
                pieces.push(Piece::Request(Request::Recv(message(from, &output))));
            }
        }
        if send[me] > 0 {
            let (from, to, bytes) = (input.at(me), output.at(me), input.bytes[me]);
            pieces.push(Piece::Local { from, to, bytes });
        }
        Ok(pieces)
    }
}

/// Refuse blocks of the two sides that overlap, unless `allowed`.
fn refuse_overlap(
    input: &Blocks<'_>,
    output: &Blocks<'_>,
    allowed: impl Fn(usize, usize) -> bool,
) -> Result<(), Error> {
    // The outermost bounds tell most often, without looking at each pair.
    let bounds = |blocks: &Blocks<'_>| {
        blocks.ranges().reduce(|(s, e), (start, end)| (s.min(start), e.max(end)))
    };
    let (Some(a), Some(b)) = (bounds(input), bounds(output)) else { return Ok(()) };
    if a.1 <= b.0 || b.1 <= a.0 {
        return Ok(());
    }
    for i in (0..input.bytes.len()).filter(|i| input.bytes[*i] > 0) {
        for o in (0..output.bytes.len()).filter(|o| output.bytes[*o] > 0) {
            let (x, y) = (input.at(i).addr(), output.at(o).addr());
            if x < y + output.bytes[o] && y < x + input.bytes[i] && !allowed(i, o) {
                let rule = "input and output must be apart, or in place as \
                            Documentation/collectives.md says";
                return Err(Error::invalid("output", "overlaps input", rule));
            }
        }
    }
    Ok(())
}
