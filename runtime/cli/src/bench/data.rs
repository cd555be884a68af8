//! Inputs whose reductions are exact in every type, and the check of results.

use half::{bf16, f16};
use stepccl::{Collective, DType, ReduceOp};

/// Memory aligned to a cache line.
#[derive(Debug)]
pub(crate) struct Buffer {
    lines: Vec<Line>,
    bytes: usize,
}

#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
struct Line([u8; 64]);

impl Buffer {
    pub fn new(bytes: usize) -> Self {
        Self { lines: vec![Line([0; 64]); bytes.div_ceil(64)], bytes }
    }

    pub fn pointer(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }

    /// Write element `i`.
    fn set(&mut self, i: usize, dtype: DType, value: f64) {
        let bytes: &[u8] = match dtype {
            DType::F32 => &(value as f32).to_ne_bytes(),
            DType::F64 => &value.to_ne_bytes(),
            DType::F16 => &f16::from_f64(value).to_ne_bytes(),
            DType::Bf16 => &bf16::from_f64(value).to_ne_bytes(),
            DType::I32 => &(value as i32).to_ne_bytes(),
            DType::I64 => &(value as i64).to_ne_bytes(),
            _ => &[value as i64 as u8],
        };
        let at = i * dtype.size();
        self.lines[at / 64].0[at % 64..][..bytes.len()].copy_from_slice(bytes);
    }

    fn get(&self, i: usize, dtype: DType) -> f64 {
        let at = i * dtype.size();
        let bytes = &self.lines[at / 64].0[at % 64..];
        let four = || [bytes[0], bytes[1], bytes[2], bytes[3]];
        let eight =
            || [bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]];
        match dtype {
            DType::F32 => f64::from(f32::from_ne_bytes(four())),
            DType::F64 => f64::from_ne_bytes(eight()),
            DType::F16 => f16::from_ne_bytes([bytes[0], bytes[1]]).to_f64(),
            DType::Bf16 => bf16::from_ne_bytes([bytes[0], bytes[1]]).to_f64(),
            DType::I32 => f64::from(i32::from_ne_bytes(four())),
            DType::I64 => i64::from_ne_bytes(eight()) as f64,
            _ => f64::from(bytes[0]),
        }
    }

    /// Fill with the contribution of `rank`.
    pub fn fill(&mut self, rank: u32, dtype: DType, seed: u64) {
        for i in 0..self.bytes / dtype.size() {
            self.set(i, dtype, contribution(rank, i, seed));
        }
    }

    /// Fill with bytes that no result has.
    pub fn poison(&mut self) {
        self.lines.fill(Line([0xa5; 64]));
    }
}

/// Element `i` of the input of `rank`: 0 to 3, so that sums of 64 ranks are exact in bfloat16.
fn contribution(rank: u32, i: usize, seed: u64) -> f64 {
    let mixed =
        (i as u64 ^ seed).wrapping_add(u64::from(rank) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 62) as f64
}

fn reduced(i: usize, ranks: u32, dtype: DType, op: ReduceOp, seed: u64) -> f64 {
    let values = (0..ranks).map(|r| contribution(r, i, seed));
    match op {
        ReduceOp::Max => values.fold(f64::NEG_INFINITY, f64::max),
        ReduceOp::Min => values.fold(f64::INFINITY, f64::min),
        _ => {
            let sum: f64 = values.sum();
            let integer = matches!(dtype, DType::I32 | DType::I64 | DType::U8);
            let sum = if dtype == DType::U8 { sum % 256.0 } else { sum };
            match op {
                ReduceOp::Avg if integer => (sum / f64::from(ranks)).trunc(),
                ReduceOp::Avg => sum / f64::from(ranks),
                _ => sum,
            }
        }
    }
}

/// A collective whose results are checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub collective: Collective,
    pub dtype: DType,
    pub op: ReduceOp,
    pub rank: u32,
    pub ranks: u32,
    pub count: usize,
    pub seed: u64,
}

impl Expected {
    /// Element `i` of the output of this rank.
    fn element(&self, i: usize) -> f64 {
        let (block, at) = (i / self.count.max(1), i % self.count.max(1));
        let own = self.rank as usize * self.count;
        match self.collective {
            Collective::AllReduce | Collective::Reduce { .. } => {
                reduced(i, self.ranks, self.dtype, self.op, self.seed)
            }
            Collective::ReduceScatter => {
                reduced(own + i, self.ranks, self.dtype, self.op, self.seed)
            }
            Collective::Broadcast { root } => contribution(root, i, self.seed),
            Collective::Scatter { root } => contribution(root, own + i, self.seed),
            Collective::AllToAll => contribution(block as u32, own + at, self.seed),
            _ => contribution(block as u32, at, self.seed),
        }
    }

    /// Elements of `output`, from element `offset` on, that are wrong.
    pub fn wrong(&self, output: &Buffer, offset: usize) -> u64 {
        let blocks = self.collective.output_blocks(self.rank, self.ranks) as usize;
        // Sums are exact; an average is rounded once more.
        let slack = match (self.op, self.dtype) {
            (ReduceOp::Avg, DType::Bf16) => 8e-3,
            (ReduceOp::Avg, DType::F16) => 1e-3,
            (ReduceOp::Avg, _) => 1e-6,
            _ => 0.0,
        };
        (0..blocks * self.count)
            .filter(|&i| {
                let expected = self.element(i);
                let error = (output.get(offset + i, self.dtype) - expected).abs();
                // A NaN is wrong too.
                error.is_nan() || error > slack * expected.abs()
            })
            .count() as u64
    }
}
