//! Inputs whose results are exact in every type, and the check of results.

use stepccl::{Collective, DType, ReduceOp};

use super::buffer::Buffer;
use super::case::Case;

/// Most ranks that contribute to one sum: 80 times 3 is exact in every type, bfloat16 and uint8
/// included, whatever the order.
const MOST_TERMS: u32 = 80;

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
        let blocks = self.case.collective.input_blocks(rank, self.case.ranks) as usize;
        for i in 0..blocks * self.count {
            buffer.set(offset + i, self.case.dtype, self.input(rank, i));
        }
    }

    /// Elements of the output of `rank`, from element `offset` of `buffer` on, that are wrong.
    pub fn wrong(&self, buffer: &Buffer, offset: usize, rank: u32) -> u64 {
        let Case { collective, dtype, ranks, .. } = self.case;
        let blocks = collective.output_blocks(rank, ranks) as usize;
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
        if !self.case.collective.reduces() || self.case.op != ReduceOp::Avg {
            return 0.0;
        }
        match self.case.dtype {
            DType::Bf16 => 8e-3,
            DType::F16 => 1e-3,
            DType::F32 => 1e-6,
            DType::F64 => 1e-15,
            _ => 0.0,
        }
    }

    /// Element `i` of the input of `rank`.
    fn input(&self, rank: u32, i: usize) -> f64 {
        let Case { collective, dtype, op, ranks } = self.case;
        let mixed = (i as u64 ^ self.seed)
            .wrapping_add(u64::from(rank) << 32)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if collective.reduces() && matches!(op, ReduceOp::Sum | ReduceOp::Avg) {
            let every = u64::from(ranks.div_ceil(MOST_TERMS));
            let takes_part = (i as u64 % every + u64::from(rank)).is_multiple_of(every);
            return if takes_part { (mixed >> 62) as f64 } else { 0.0 };
        }
        // Seven bits: exact in every type.
        let value = (mixed >> 57) as f64;
        if dtype == DType::U8 { value } else { value - 64.0 }
    }

    /// Element `i` of the output of `rank`.
    fn output(&self, rank: u32, i: usize) -> f64 {
        let (block, at) = (i / self.count.max(1), i % self.count.max(1));
        let own = rank as usize * self.count;
        match self.case.collective {
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
            ReduceOp::Max => inputs.fold(f64::NEG_INFINITY, f64::max),
            ReduceOp::Min => inputs.fold(f64::INFINITY, f64::min),
            ReduceOp::Avg => {
                let mean = inputs.sum::<f64>() / f64::from(ranks);
                let integer = matches!(dtype, DType::I32 | DType::I64 | DType::U8);
                if integer { mean.trunc() } else { mean }
            }
            _ => inputs.sum(),
        }
    }
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
        let Case { collective, dtype, ranks, .. } = values.case;
        for i in 0..collective.output_blocks(rank, ranks) as usize * COUNT {
            output.set(i, dtype, values.output(rank, i));
        }
        output
    }

    fn every(ranks: u32) -> impl Iterator<Item = Values> {
        Collective::ALL.into_iter().flat_map(move |collective| {
            let line = format!("{collective} --ranks {ranks} -d all -o all");
            Case::all(&args(&line)).into_iter().map(|case| Values { case, count: COUNT, seed: 99 })
        })
    }

    #[test]
    fn right_results_are_right_and_one_wrong_element_is_found() {
        for values in every(3) {
            let Case { collective, dtype, ranks, .. } = values.case;
            for rank in 0..ranks {
                let elements = collective.output_blocks(rank, ranks) as usize * COUNT;
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
        let float =
            |v: &Values| matches!(v.case.dtype, DType::F32 | DType::F64 | DType::F16 | DType::Bf16);
        let mut seen = 0;
        for values in every(2).filter(float).filter(|v| v.case.collective == Collective::AllReduce)
        {
            for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                let mut output = right(&values, 0);
                output.set(5, values.case.dtype, value);
                assert_eq!(values.wrong(&output, 0, 0), 1, "{values:?} {value}");
                seen += 1;
            }
        }
        assert_eq!(seen, 4 * 4 * 3);
    }

    #[test]
    fn memory_that_no_call_wrote_is_wrong() {
        let mut poison = Buffer::new(1 << 14).unwrap();
        poison.poison();
        for values in every(2) {
            let elements = values.case.collective.output_blocks(0, 2) as usize * COUNT;
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
        for ranks in [2, 80, 81, 512, 1024] {
            let case = Case { ranks, ..Case::all(&args("all_reduce -d bfloat16"))[0] };
            let values = Values { case, count: 200, seed: 3 };
            assert!((0..200).all(|i| values.reduced(i) <= 240.0), "{ranks} ranks");
            for rank in 0..ranks {
                assert!((0..200).any(|i| values.input(rank, i) > 0.0), "rank {rank} of {ranks}");
            }
        }
    }
}
