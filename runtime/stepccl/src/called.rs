//! What a rank called, in two words that peers compare.

use std::fmt;

use stepccl_plan::{Collective, DType, ReduceOp};

use crate::Call;

/// A collective call without its memory: what must be the same on every rank.
///
/// ```text
/// first word:  | root (32 bits) | stage (8) | operation (8) | type (8) | collective (8) |
/// second word: | count                                                                 |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Called(pub [u64; 2]);

impl Called {
    pub fn of(call: &Call) -> Self {
        let collective = call.collective;
        let moves = collective != Collective::Barrier;
        let op =
            if collective.reduces() { 1 + code(&ReduceOp::ALL, |op| *op == call.op) } else { 0 };
        let dtype = if moves { 1 + code(&DType::ALL, |d| *d == call.dtype) } else { 0 };
        let kind = 1 + code(&Collective::ALL, |c| c.with_root(0) == collective.with_root(0));
        let root = u64::from(collective.root().unwrap_or(0));
        let count = if moves { call.count as u64 } else { 0 };
        Self([kind | dtype << 8 | op << 16 | root << 32, count])
    }

    /// Codes of the collective, the type and the operation; 0: none. A code is a place in the list
    /// of all, counted from 1.
    pub const fn codes(self) -> [u8; 3] {
        let [kind, dtype, op, ..] = self.0[0].to_le_bytes();
        [kind, dtype, op]
    }
}

/// Place of a value in the list of all, which is the same in every rank: versions are compared at
/// start.
fn code<T>(all: &[T], is: impl Fn(&T) -> bool) -> u64 {
    // The lists are complete; what is not there would be a kind of its own.
    all.iter().position(is).unwrap_or(0xfe) as u64
}

/// The value of a byte of a word, where the byte means one.
fn decode<T: Copy>(all: &[T], word: u64, shift: u32) -> Option<T> {
    let code = (word >> shift & 0xff) as usize;
    all.get(code.checked_sub(1)?).copied()
}

impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [what, count] = self.0;
        let Some(collective) = decode(&Collective::ALL, what, 0) else {
            return write!(f, "something unknown ({what:#x}, {count:#x})");
        };
        write!(f, "{collective}")?;
        if let Some(dtype) = decode(&DType::ALL, what, 8) {
            write!(f, " of {count} {dtype}")?;
        }
        if let Some(op) = decode(&ReduceOp::ALL, what, 16) {
            write!(f, " ({op})")?;
        }
        if collective.root().is_some() {
            write!(f, " with root {}", what >> 32)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::Memory;

    fn call(collective: Collective, dtype: DType, op: ReduceOp, count: usize) -> Call {
        let (input, output) = (Memory::None, Memory::None);
        Call { collective, dtype, op, premul: 1.0, count, input, output }
    }

    #[test]
    fn what_differs_in_anything_that_counts_has_other_words_and_another_text() {
        let mut words = HashSet::new();
        let mut texts = HashSet::new();
        let mut calls = 0;
        for collective in Collective::ALL.into_iter().flat_map(|c| {
            let roots: &[u32] = if c.root().is_some() { &[0, 1, u32::MAX] } else { &[0] };
            roots.iter().map(move |r| c.with_root(*r))
        }) {
            let ops = if collective.reduces() { &ReduceOp::ALL[..] } else { &ReduceOp::ALL[..1] };
            let barrier = collective == Collective::Barrier;
            let dtypes = if barrier { &DType::ALL[..1] } else { &DType::ALL[..] };
            let counts: &[usize] = if barrier { &[0] } else { &[0, 1, 1 << 40] };
            for (op, dtype) in ops.iter().flat_map(|op| dtypes.iter().map(move |d| (*op, *d))) {
                for count in counts {
                    let called = Called::of(&call(collective, dtype, op, *count));
                    words.insert(called.0);
                    texts.insert(called.to_string());
                    calls += 1;
                }
            }
        }
        assert_eq!((words.len(), texts.len()), (calls, calls));
    }

    #[test]
    fn what_does_not_count_is_left_out() {
        let gather = |op| Called::of(&call(Collective::AllGather, DType::F32, op, 3));
        assert_eq!(gather(ReduceOp::Sum), gather(ReduceOp::Max));
        let barrier = |dtype, count| {
            Called::of(&call(Collective::Barrier, dtype, ReduceOp::Sum, count)).to_string()
        };
        assert_eq!(barrier(DType::F32, 3), "barrier");
        assert_eq!(barrier(DType::U8, 0), "barrier");
    }

    #[test]
    fn nonsense_is_named_as_such() {
        assert_eq!(Called([0, 1]).to_string(), "something unknown (0x0, 0x1)");
        assert_eq!(
            Called([u64::MAX, 0]).to_string(),
            "something unknown (0xffffffffffffffff, 0x0)"
        );
    }
}
