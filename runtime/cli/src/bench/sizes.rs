//! The sizes of a run.

use std::error::Error;

use stepccl::Collective;

use super::Args;

/// One size of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Bytes as shown: the larger of a rank's input and output.
    pub bytes: usize,
    /// Elements of a block.
    pub count: usize,
}

/// Blocks of the larger buffer of any rank.
pub(crate) fn blocks(collective: Collective, ranks: u32) -> usize {
    (0..ranks)
        .map(|r| collective.input_blocks(r, ranks).max(collective.output_blocks(r, ranks)))
        .max()
        .unwrap_or(1)
        .max(1) as usize
}

/// Sizes from smallest to largest, each cut down to whole elements of whole blocks.
pub(crate) fn sizes(args: &Args) -> Result<Vec<Size>, Box<dyn Error>> {
    if args.min > args.max {
        return Err(format!("--minbytes {} is more than --maxbytes {}", args.min, args.max).into());
    }
    if args.step.is_none() && args.factor < 2 {
        return Err(format!("--stepfactor {}: must be at least 2", args.factor).into());
    }
    if args.step == Some(0) {
        return Err("--stepbytes 0: must be at least 1".into());
    }
    if args.collective == Collective::Barrier {
        return Ok(vec![Size { bytes: 0, count: 0 }]);
    }
    let unit = blocks(args.collective, args.ranks) * args.dtype.size();
    let mut sizes = Vec::new();
    let mut bytes = args.min;
    loop {
        let count = bytes / unit * unit / unit;
        sizes.push(Size { bytes: count * unit, count });
        let next = match args.step {
            Some(step) => bytes.checked_add(step),
            None => bytes.max(1).checked_mul(args.factor),
        };
        match next {
            Some(next) if next <= args.max => bytes = next,
            _ => break,
        }
    }
    sizes.dedup();
    Ok(sizes)
}
