//! Which small collectives of a group run as one. Pure: the same list gives the same answer on
//! every rank.

use std::ops::Range;

use stepccl_plan::{Collective, DType, ReduceOp};

use crate::Call;

/// Most bytes of an operation that is packed: above, copying them in and out costs more than the
/// waits that it saves.
pub(crate) const MAX_PART_BYTES: usize = 8 << 10;
/// Most bytes packed at once: what is packed is still in the caches when it is sent.
pub(crate) const MAX_PACK_BYTES: usize = 256 << 10;

/// What a collective of a group is, as every rank sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    collective: Collective,
    dtype: DType,
    op: ReduceOp,
    /// Bytes of the larger of input and output on the rank that has the most.
    bytes: usize,
}

impl Shape {
    pub fn of(call: &Call, ranks: u32) -> Self {
        let (blocks, reduces) = match call.collective {
            Collective::AllReduce | Collective::Reduce { .. } => (1, true),
            Collective::ReduceScatter => (ranks as usize, true),
            Collective::Broadcast { .. } => (1, false),
            _ => (ranks as usize, false),
        };
        Self {
            collective: call.collective,
            dtype: call.dtype,
            op: if reduces { call.op } else { ReduceOp::Sum },
            bytes: call.block_bytes().saturating_mul(blocks),
        }
    }

    fn is_small(&self) -> bool {
        // Each rank has a factor of its own for each operation of a premultiplied sum.
        let packs = self.collective != Collective::Barrier && self.op != ReduceOp::PremulSum;
        packs && self.bytes <= MAX_PART_BYTES
    }

    fn goes_with(&self, other: &Self) -> bool {
        // Ranks cannot see whether the others' factors are the same.
        self.op != ReduceOp::PremulSum
            && (self.collective, self.dtype, self.op) == (other.collective, other.dtype, other.op)
    }
}

/// Cut `shapes` into runs, in order; the collectives of a run may be packed into one.
pub(crate) fn runs(shapes: impl IntoIterator<Item = Shape>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    // First shape of the last run, and the bytes of all of it.
    let mut last: Option<(Shape, usize)> = None;
    for (at, shape) in shapes.into_iter().enumerate() {
        if let (Some((first, bytes)), Some(run)) = (&mut last, runs.last_mut())
            && first.is_small()
            && shape.is_small()
            && shape.goes_with(first)
            && *bytes + shape.bytes <= MAX_PACK_BYTES
        {
            *bytes += shape.bytes;
            run.end = at + 1;
        } else {
            runs.push(at..at + 1);
            last = Some((shape, shape.bytes));
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Memory;

    fn shape(collective: Collective, dtype: DType, op: ReduceOp, count: usize) -> Shape {
        let (input, output) = (Memory::None, Memory::None);
        Shape::of(&Call { collective, dtype, op, premul: 1.0, count, input, output }, 4)
    }

    fn any_shape() -> impl Strategy<Value = Shape> {
        let collective = prop::sample::select(vec![
            Collective::AllReduce,
            Collective::Broadcast { root: 0 },
            Collective::Broadcast { root: 1 },
            Collective::AllGather,
            Collective::ReduceScatter,
            Collective::Barrier,
        ]);
        let count = prop_oneof![6 => 0usize..5000, 1 => 0usize..200_000];
        let dtype = prop::sample::select(vec![DType::F32, DType::F64]);
        let op = prop::sample::select(vec![ReduceOp::Sum, ReduceOp::Max]);
        (collective, dtype, op, count).prop_map(|(c, d, o, n)| shape(c, d, o, n))
    }

    proptest! {
        #[test]
        fn runs_cover_the_list_in_order_and_hold_only_what_fits_together(
            shapes in prop::collection::vec(any_shape(), 0..200)
        ) {
            let runs = runs(shapes.iter().copied());
            let mut next = 0;
            for run in &runs {
                prop_assert!(run.start == next && run.end > run.start);
                next = run.end;
                if run.len() > 1 {
                    let members = &shapes[run.clone()];
                    prop_assert!(members.iter().all(|s| s.is_small() && s.goes_with(&members[0])));
                    prop_assert!(members.iter().map(|s| s.bytes).sum::<usize>() <= MAX_PACK_BYTES);
                }
            }
            prop_assert_eq!(next, shapes.len());
            // No two neighbours could have been one.
            for pair in runs.windows(2) {
                let (a, b) = (&shapes[pair[0].clone()], &shapes[pair[1].start]);
                let all = a.iter().map(|s| s.bytes).sum::<usize>() + b.bytes;
                let fits = a[0].is_small() && b.is_small() && a[0].goes_with(b);
                prop_assert!(!fits || all > MAX_PACK_BYTES);
            }
        }
    }

    #[test]
    fn a_thousand_small_ones_are_a_few_large_ones() {
        let shapes = vec![shape(Collective::AllReduce, DType::F32, ReduceOp::Sum, 256); 1000];
        let runs = runs(shapes.iter().copied());
        assert_eq!(runs.len(), (1000 * 1024usize).div_ceil(MAX_PACK_BYTES));
    }

    #[test]
    fn the_operation_counts_only_where_something_is_reduced() {
        let of = |op| shape(Collective::AllGather, DType::F32, op, 8);
        assert_eq!(runs([of(ReduceOp::Sum), of(ReduceOp::Max)]).len(), 1);
        let of = |op| shape(Collective::AllReduce, DType::F32, op, 8);
        assert_eq!(runs([of(ReduceOp::Sum), of(ReduceOp::Max)]).len(), 2);
    }
}
