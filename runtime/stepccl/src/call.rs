//! One collective call: what is asked for, checked before anything starts.

use stepccl_plan::{Collective, DType, ReduceOp};

use crate::memory::range;
use crate::{Error, Memory};

/// Largest block in bytes: what one region can address.
const MAX_BLOCK_BYTES: u64 = 1 << 40;

/// Largest number up to which an f64 holds every whole number.
const MAX_WHOLE_FACTOR: f64 = 9_007_199_254_740_992.0;

/// A collective with its buffers.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which collective, with its root.
    pub collective: Collective,
    /// Type of the elements.
    pub dtype: DType,
    /// How contributions are combined; ignored where nothing is combined.
    pub op: ReduceOp,
    /// What [`ReduceOp::PremulSum`] multiplies this rank's input by, each rank's its own; ignored
    /// by other operations. A whole number of at most 2^53 for integers.
    pub premul: f64,
    /// Elements of one block (see [`Collective`] for what a block is).
    pub count: usize,
    /// Input blocks of this rank.
    pub input: Memory,
    /// Output blocks of this rank.
    pub output: Memory,
}

impl Call {
    /// Bytes of one block; checked to fit by [`Call::check`].
    pub(crate) const fn block_bytes(&self) -> usize {
        self.count.saturating_mul(self.dtype.size())
    }

    /// Bytes of the larger of input and output of `rank`, as logs and errors show them.
    pub(crate) fn message_bytes(&self, rank: u32, ranks: u32) -> u64 {
        let blocks = self
            .collective
            .input_blocks(rank, ranks)
            .max(self.collective.output_blocks(rank, ranks));
        self.block_bytes() as u64 * u64::from(blocks)
    }

    /// Refuse a call that cannot be right.
    pub(crate) fn check(&self, rank: u32, ranks: u32) -> Result<(), Error> {
        if let Some(root) = self.collective.root()
            && root >= ranks
        {
            let rule = format!("must be less than {ranks}, the number of ranks");
            return Err(Error::invalid("root", root, rule));
        }
        let block = (self.count as u64)
            .checked_mul(self.dtype.size() as u64)
            .filter(|&b| b.checked_mul(u64::from(ranks)).is_some_and(|all| all <= MAX_BLOCK_BYTES));
        let Some(block) = block else {
            let rule = format!(
                "all blocks together must be at most 2^40 bytes ({} bytes an element, {ranks} ranks)",
                self.dtype.size()
            );
            return Err(Error::invalid("count", self.count, rule));
        };
        self.check_op()?;
        let inputs = self.collective.input_blocks(rank, ranks);
        let outputs = self.collective.output_blocks(rank, ranks);
        self.check_memory(rank, inputs, outputs, block as usize)
    }

    /// Refuse buffers that cannot hold so many blocks of `bytes` bytes, or lie in one another.
    #[inline]
    pub(crate) fn check_memory(
        &self,
        rank: u32,
        inputs: u32,
        outputs: u32,
        bytes: usize,
    ) -> Result<(), Error> {
        self.input.check("input", inputs, bytes)?;
        self.output.check("output", outputs, bytes)?;
        self.check_overlap(rank, inputs, outputs, bytes)
    }

    /// Refuse an operation that the type does not have.
    fn check_op(&self) -> Result<(), Error> {
        let Self { collective, dtype, op, premul, .. } = *self;
        if !collective.reduces() {
            return Ok(());
        }
        if !op.applies_to(dtype) {
            let possible: Vec<&str> = ReduceOp::all_of(dtype).map(ReduceOp::name).collect();
            let rule = format!("{dtype} elements are combined by one of {}", possible.join(", "));
            return Err(Error::invalid("op", format_args!("{op} of {dtype}"), rule));
        }
        let whole = || premul.fract() == 0.0 && premul.abs() <= MAX_WHOLE_FACTOR;
        if op == ReduceOp::PremulSum && dtype.is_integer() && !whole() {
            let rule = format!("must be a whole number of at most 2^53 for {dtype} elements");
            return Err(Error::invalid("premul", premul, rule));
        }
        Ok(())
    }

    /// What this rank's input is multiplied by before anything is done with it.
    pub(crate) fn factor(&self) -> Option<f64> {
        (self.op == ReduceOp::PremulSum && self.collective.reduces()).then_some(self.premul)
    }

    /// The block of the output that may be the very memory of which block of the input.
    fn in_place(&self, rank: u32) -> Option<(u32, u32)> {
        match self.collective {
            Collective::AllReduce | Collective::Broadcast { .. } | Collective::Reduce { .. } => {
                Some((0, 0))
            }
            Collective::AllGather | Collective::Gather { .. } => Some((0, rank)),
            Collective::ReduceScatter | Collective::Scatter { .. } => Some((rank, 0)),
            _ => None,
        }
    }

    #[inline]
    fn check_overlap(
        &self,
        rank: u32,
        inputs: u32,
        outputs: u32,
        bytes: usize,
    ) -> Result<(), Error> {
        if bytes == 0 || inputs == 0 || outputs == 0 {
            return Ok(());
        }
        if let Some((from, to)) = self.in_place(rank)
            && self.input.block(from, bytes) == self.output.block(to, bytes)
        {
            return Ok(());
        }
        let overlap = |(start, end), (s, e)| start < e && s < end;
        let overlaps = match (&self.input, &self.output) {
            (Memory::Contiguous(input), Memory::Contiguous(output)) => {
                overlap(range(*input, inputs, bytes), range(*output, outputs, bytes))
            }
            (input, output) => input
                .ranges(inputs, bytes)
                .any(|i| output.ranges(outputs, bytes).any(|o| overlap(i, o))),
        };
        if overlaps { Err(self.overlapping()) } else { Ok(()) }
    }

    #[cold]
    fn overlapping(&self) -> Error {
        Error::invalid(
            "output",
            "overlaps input",
            format!(
                "{}: input and output must be apart, or in place as Documentation/collectives.md says",
                self.collective
            ),
        )
    }
}
