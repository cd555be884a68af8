//! Whether the machine has what a run needs, before anything is started.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use stepccl::Config;

use super::Args;
use super::case::Case;
use super::sizes::largest;
use crate::memory;
use crate::outcome::BadArguments;

/// Staging of all ranks together, unless set.
const STAGING_BYTES: u64 = 8 << 20;
/// Memory of a process without its buffers, about.
const PROCESS_BYTES: u64 = 4 << 20;
/// Files a rank holds open for each peer: a socket twice, shared memory in passing.
const FILES_A_PEER: u64 = 3;
/// Files a rank holds open besides.
const FILES: u64 = 64;

/// Refuse a run that needs more memory or open files than there are.
///
/// # Errors
///
/// [`BadArguments`] with what is needed, what there is and the way out.
pub(crate) fn check(args: &Args, config: &Config) -> Result<(), BadArguments> {
    let needed = bytes(args, config);
    if let Some(available) = memory::available().filter(|available| needed > *available) {
        return Err(BadArguments(format!(
            "--maxbytes {} with --ranks {} needs about {} of memory and {} are free; give a smaller -e or fewer --ranks",
            args.max,
            args.ranks,
            stepccl_plan::format_bytes(needed),
            stepccl_plan::format_bytes(available)
        )));
    }
    files(args.ranks)
}

/// Memory of all ranks together; the largest number where it would be more.
fn bytes(args: &Args, config: &Config) -> u64 {
    let ranks = u64::from(args.ranks);
    let buffers = Case::all(args).into_iter().map(|case| {
        let block = (largest(args, case).count as u64).saturating_mul(case.dtype.size() as u64);
        let blocks = (0..case.ranks).map(|rank| {
            u64::from(case.operation.input_blocks(rank, case.ranks))
                + u64::from(case.operation.output_blocks(rank, case.ranks))
        });
        block.saturating_mul(blocks.sum())
    });
    let staging =
        config.buffer_bytes.map_or(STAGING_BYTES, |one| (one as u64).saturating_mul(ranks));
    buffers.max().unwrap_or(0).saturating_add(staging).saturating_add(ranks * PROCESS_BYTES)
}

/// Files that a process of so many ranks has open.
pub(crate) fn files_needed(ranks: u32) -> u64 {
    FILES + FILES_A_PEER * u64::from(ranks)
}

/// Let ranks, which inherit the limit, open as many files as they have peers.
fn files(ranks: u32) -> Result<(), BadArguments> {
    let needed = files_needed(ranks);
    // Where the limit is not told, opening will tell.
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return Ok(()) };
    if soft >= needed {
        return Ok(());
    }
    if hard < needed {
        return Err(BadArguments(format!(
            "--ranks {ranks} needs {needed} open files a process and the limit is {hard}; raise it (ulimit -Hn) or give fewer --ranks"
        )));
    }
    // Refused only where the limit changed in between; then opening will tell.
    let _ = setrlimit(Resource::RLIMIT_NOFILE, needed, hard);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::values::tests::args;

    fn needed(line: &str) -> u64 {
        let args = args(line);
        let fixed = STAGING_BYTES + u64::from(args.ranks) * PROCESS_BYTES;
        bytes(&args, &Config::default()) - fixed
    }

    #[test]
    fn every_rank_has_an_input_and_an_output() {
        assert_eq!(needed("all_reduce -e 1G"), 4 << 30);
        assert_eq!(needed("all_reduce --ranks 3 -e 1G"), 6 << 30);
        assert_eq!(needed("broadcast --ranks 3 -e 1G"), 4 << 30);
        assert_eq!(needed("all_to_all --ranks 4 -e 1G"), 8 << 30);
        assert_eq!(needed("barrier -e 1G"), 0);
    }

    #[test]
    fn sizes_beyond_all_memory_do_not_overflow() {
        let line = format!("all_reduce -d uint8 -e {}", usize::MAX);
        assert_eq!(bytes(&args(&line.replace("-e", "-b 1 -i 1 -e")), &Config::default()), u64::MAX);
    }
}
