//! The sizes of a run.

use super::Args;
use super::case::Case;
use super::operation::Operation;

/// One size of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Bytes as shown: the larger of a rank's input and output.
    pub bytes: usize,
    /// Elements of a block.
    pub count: usize,
}

/// Sizes from smallest to largest, each cut down to whole elements of whole blocks. The arguments
/// are checked: smallest and largest in order, a step that is one.
pub(crate) fn sizes(args: &Args, case: Case) -> impl Iterator<Item = Size> {
    let unit = case.blocks() * case.dtype.size();
    let (max, step, factor) = (args.max, args.step, args.factor);
    let barrier = case.operation.is_barrier();
    // A group of nothing says nothing.
    let least = usize::from(matches!(case.operation, Operation::Group { .. }));
    let next = move |bytes: &usize| {
        let next = match step {
            Some(step) => bytes.checked_add(step),
            // From 0 the only way up is to 1.
            None if *bytes == 0 => Some(1),
            None => bytes.checked_mul(factor),
        };
        next.filter(|next| *next <= max && !barrier)
    };
    let mut last = None;
    std::iter::successors(Some(args.min), next)
        .map(move |bytes| if barrier { 0 } else { bytes / unit })
        .filter(move |count| *count >= least)
        // Steps below a unit would repeat a size.
        .filter(move |count| last.replace(*count) != Some(*count))
        .map(move |count| Size { bytes: count * unit, count })
}

/// The largest of [`sizes`], found without a walk over them.
pub(crate) fn largest(args: &Args, case: Case) -> Size {
    let unit = case.blocks() * case.dtype.size();
    let bytes = match args.step {
        _ if case.operation.is_barrier() => 0,
        Some(step) => args.max - (args.max - args.min) % step,
        None => {
            let grow = |bytes: &usize| {
                let next = if *bytes == 0 { Some(1) } else { bytes.checked_mul(args.factor) };
                next.filter(|next| *next <= args.max)
            };
            std::iter::successors(Some(args.min), grow).last().unwrap_or(args.min)
        }
    };
    let count = bytes / unit;
    Size { bytes: count * unit, count }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::values::tests::args;

    fn of(line: &str) -> Vec<usize> {
        let args = args(line);
        let case = Case::all(&args)[0];
        let sizes: Vec<_> = sizes(&args, case).map(|size| size.bytes).collect();
        assert_eq!(sizes.last(), Some(&largest(&args, case).bytes), "{line}");
        sizes
    }

    #[test]
    fn sizes_multiply_or_add_up_to_the_largest() {
        assert_eq!(of("all_reduce -b 8 -e 70"), [8, 16, 32, 64]);
        assert_eq!(of("all_reduce -b 8 -e 70 -f 3"), [8, 24]);
        assert_eq!(of("all_reduce -b 8 -e 70 -i 20"), [8, 28, 48, 68]);
        assert_eq!(of("all_reduce -b 64 -e 64"), [64]);
    }

    #[test]
    fn sizes_are_whole_elements_of_whole_blocks_each_once() {
        assert_eq!(of("all_reduce -b 3 -e 9 -i 1"), [0, 4, 8]);
        assert_eq!(of("all_gather --ranks 3 -b 8 -e 40"), [0, 12, 24]);
        assert_eq!(of("all_reduce -b 0 -e 8"), [0, 4, 8]);
        assert_eq!(of("barrier -b 0 -e 1G"), [0]);
        assert_eq!(of("group --members 3 -b 8 -e 40"), [12, 24]);
    }

    #[test]
    fn the_largest_number_is_no_overflow() {
        let max = usize::MAX;
        assert_eq!(of(&format!("all_reduce -d uint8 -b {max} -e {max}")), [max]);
        assert_eq!(of(&format!("all_reduce -d uint8 -b 1 -e {max} -f {max}")), [1, max]);
    }
}
