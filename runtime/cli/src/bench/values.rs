//! Inputs whose results are exact in every type, and the check of results.

use stepccl::{Collective, DType, Kind, ReduceOp};

use super::buffer::Buffer;
use super::case::Case;
use super::operation::Operation;

/// What every rank multiplies its input by where the operation multiplies.
pub(super) const FACTOR: f64 = 2.0;

/// Most ranks that contribute to one product of at most 2 each.
const MOST_FACTORS: u32 = 6;

/// Most ranks that contribute to one sum, and the bits of each: `FACTOR` times the sum is exact in
/// the type, whatever the order.
const fn terms(dtype: DType) -> (u32, u32) {
    match dtype {
        DType::F8E4M3 => (16, 1),
        DType::F8E5M2 => (8, 1),
        DType::I8 => (21, 2),
        DType::U8 => (40, 2),
        _ => (80, 2),
    }
}

/// Inputs and results of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values {
    pub case: Case,
    /// Elements of a block.
    pub count: usize,
    pub seed: u64,
}

impl Values {
    /// Write the input of `rank` from element `offset` on.
    pub fn fill(&self, buffer: &mut Buffer, offset: usize, rank: u32) {
        let blocks = self.case.operation.input_blocks(rank, self.case.ranks) as usize;
        for i in 0..blocks * self.count {
            buffer.set(offset + i, self.case.dtype, self.input(rank, i));
        }
    }

    /// Elements of the output of `rank`, from element `offset` of `buffer` on, that are wrong.
    pub fn wrong(&self, buffer: &Buffer, offset: usize, rank: u32) -> u64 {
        let Case { operation, dtype, ranks, .. } = self.case;
        let blocks = operation.output_blocks(rank, ranks) as usize;
        let slack = self.slack();
        (0..blocks * self.count)
            .filter(|&i| {
                let expected = self.output(rank, i);
                let error = (buffer.get(offset + i, dtype) - expected).abs();
                // A NaN is wrong too.
                error.is_nan() || error > slack * expected.abs()
            })
            .count() as u64
    }

    /// Relative error that is right: sums are exact, an average is rounded once more.
    fn slack(&self) -> f64 {
        if !self.case.operation.reduces() || self.case.op != ReduceOp::Avg {
            return 0.0;
        }
        match self.case.dtype {
            DType::F8E5M2 => 0.13,
            DType::F8E4M3 => 0.07,
            DType::Bf16 => 8e-3,
            DType::F16 => 1e-3,
            DType::F32 | DType::C64 => 1e-6,
            DType::F64 | DType::C128 => 1e-15,
            _ => 0.0,
        }
    }

    /// Element `i` of the input of `rank`.
    fn input(&self, rank: u32, i: usize) -> f64 {
        let Case { operation, dtype, op, ranks } = self.case;
        let mixed = (i as u64 ^ self.seed)
            .wrapping_add(u64::from(rank) << 32)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let takes_part = |most: u32| {
            let every = u64::from(ranks.div_ceil(most));
            (i as u64 % every + u64::from(rank)).is_multiple_of(every)
        };
        match (op, dtype) {
            (_, DType::Bool) => (mixed >> 63) as f64,
            (ReduceOp::Sum | ReduceOp::Avg | ReduceOp::PremulSum, _) if operation.reduces() => {
                let (most, bits) = terms(dtype);
                if takes_part(most) { (mixed >> (64 - bits)) as f64 } else { 0.0 }
            }
            (ReduceOp::Prod, _) if operation.reduces() => {
                if takes_part(MOST_FACTORS) {
                    (1 + (mixed >> 63)) as f64
                } else {
                    1.0
                }
            }
            // Exact in three bits of fraction.
            (_, DType::F8E4M3 | DType::F8E5M2) => (mixed >> 60) as f64 - 8.0,
            // Seven bits: exact in every other type.
            _ if dtype.kind() == Kind::Unsigned || is_bitwise(op) => (mixed >> 57) as f64,
            _ => (mixed >> 57) as f64 - 64.0,
        }
    }

    /// Element `i` of the output of `rank`.
    fn output(&self, rank: u32, i: usize) -> f64 {
        let (block, at) = (i / self.count.max(1), i % self.count.max(1));
        let own = rank as usize * self.count;
        let collective = match self.case.operation {
            Operation::Collective(collective) => collective,
            Operation::SendRecv => {
                return self.input((rank + self.case.ranks - 1) % self.case.ranks, i);
            }
            Operation::PingPong => return self.input(0, i),
            Operation::Group { .. } => return self.reduced(i),
        };
        match collective {
            Collective::AllReduce | Collective::Reduce { .. } => self.reduced(i),
            Collective::ReduceScatter => self.reduced(own + i),
            Collective::Broadcast { root } => self.input(root, i),
            Collective::Scatter { root } => self.input(root, own + i),
            Collective::AllToAll => self.input(block as u32, own + at),
            _ => self.input(block as u32, at),
        }
    }

    /// The reduction of element `i` of all inputs.
    fn reduced(&self, i: usize) -> f64 {
        let Case { dtype, op, ranks, .. } = self.case;
        let inputs = (0..ranks).map(|rank| self.input(rank, i));
        match op {
            ReduceOp::Sum if dtype == DType::Bool => inputs.fold(0.0, f64::max),
            ReduceOp::Prod => inputs.product(),
            ReduceOp::Max => inputs.fold(f64::NEG_INFINITY, f64::max),
            ReduceOp::Min => inputs.fold(f64::INFINITY, f64::min),
            ReduceOp::Avg => {
                let mean = inputs.sum::<f64>() / f64::from(ranks);
                if dtype.is_integer() { mean.trunc() } else { mean }
            }
            ReduceOp::PremulSum => FACTOR * inputs.sum::<f64>(),
            ReduceOp::BitAnd => inputs.map(|x| x as u64).fold(!0, |a, b| a & b) as f64,
            ReduceOp::BitOr => inputs.map(|x| x as u64).fold(0, |a, b| a | b) as f64,
            ReduceOp::BitXor => inputs.map(|x| x as u64).fold(0, |a, b| a ^ b) as f64,
            _ => inputs.sum(),
        }
    }
}

const fn is_bitwise(op: ReduceOp) -> bool {
    matches!(op, ReduceOp::BitAnd | ReduceOp::BitOr | ReduceOp::BitXor)
}

#[cfg(test)]
pub(super) mod tests {
    use clap::Parser;

    use super::super::Args;
    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    /// Arguments of `stepccl bench LINE`.
    pub fn args(line: &str) -> Args {
        Line::parse_from(std::iter::once("bench").chain(line.split(' '))).args
    }

    const COUNT: usize = 37;

    /// What a rank's output is when all goes well.
    fn right(values: &Values, rank: u32) -> Buffer {
        let mut output = Buffer::new(1 << 14).unwrap();
        output.poison();
        let Case { operation, dtype, ranks, .. } = values.case;
        for i in 0..operation.output_blocks(rank, ranks) as usize * COUNT {
            output.set(i, dtype, values.output(rank, i));
        }
        output
    }

    fn every(ranks: u32) -> impl Iterator<Item = Values> {
        let collectives = Collective::ALL.map(Operation::Collective);
        let others = [Operation::SendRecv, Operation::PingPong, Operation::Group { members: 3 }];
        collectives.into_iter().chain(others).flat_map(move |operation| {
            let line = format!("{operation} --ranks {ranks} -d all -o all --members 3");
            Case::all(&args(&line)).into_iter().map(|case| Values { case, count: COUNT, seed: 99 })
        })
    }

    #[test]
    fn right_results_are_right_and_one_wrong_element_is_found() {
        for values in every(3) {
            let Case { operation, dtype, ranks, .. } = values.case;
            for rank in 0..ranks {
                let elements = operation.output_blocks(rank, ranks) as usize * COUNT;
                let mut output = right(&values, rank);
                assert_eq!(values.wrong(&output, 0, rank), 0, "{values:?}");
                for i in [0, elements / 2, elements.saturating_sub(1)] {
                    if i < elements {
                        let was = output.get(i, dtype);
                        output.set(i, dtype, was + 1.0);
                        assert_eq!(values.wrong(&output, 0, rank), 1, "{values:?} element {i}");
                        output.set(i, dtype, was);
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_number_is_wrong() {
        let float = |v: &Values| v.case.dtype.kind() == Kind::Float;
        let is_all_reduce =
            |v: &Values| v.case.operation == Operation::Collective(Collective::AllReduce);
        let mut seen = 0;
        for values in every(2).filter(float).filter(is_all_reduce) {
            for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                let mut output = right(&values, 0);
                output.set(5, values.case.dtype, value);
                assert_eq!(values.wrong(&output, 0, 0), 1, "{values:?} {value}");
                seen += 1;
            }
        }
        assert_eq!(seen, 6 * 6 * 3);
    }

    #[test]
    fn memory_that_no_call_wrote_is_wrong() {
        let mut poison = Buffer::new(1 << 14).unwrap();
        poison.poison();
        for values in every(2) {
            let elements = values.case.operation.output_blocks(0, 2) as usize * COUNT;
            assert_eq!(values.wrong(&poison, 0, 0), elements as u64, "{values:?}");
        }
    }

    #[test]
    fn a_result_at_an_offset_is_looked_for_there() {
        let case = Case::all(&args("reduce_scatter"))[0];
        let values = Values { case, count: COUNT, seed: 7 };
        let mut output = Buffer::new(1 << 12).unwrap();
        for i in 0..COUNT {
            output.set(COUNT + i, case.dtype, values.output(1, i));
        }
        assert_eq!(values.wrong(&output, COUNT, 1), 0);
        assert_ne!(values.wrong(&output, 0, 1), 0);
    }

    #[test]
    fn sums_of_many_ranks_stay_exact_and_use_every_rank() {
        let largest = [
            ("f8e4m3", 16.0),
            ("f8e5m2", 8.0),
            ("int8", 63.0),
            ("uint8", 120.0),
            ("bfloat16", 240.0),
        ];
        for (dtype, largest) in largest {
            for ranks in [2, 80, 81, 512, 1024] {
                let case = Case { ranks, ..Case::all(&args(&format!("all_reduce -d {dtype}")))[0] };
                let values = Values { case, count: 1000, seed: 3 };
                assert!((0..1000).all(|i| values.reduced(i) <= largest), "{dtype}, {ranks} ranks");
                for rank in 0..ranks {
                    let any = (0..1000).any(|i| values.input(rank, i) > 0.0);
                    assert!(any, "{dtype}, rank {rank} of {ranks}");
                }
            }
        }
    }
}
