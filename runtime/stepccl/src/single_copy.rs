//! Whether ranks may read and write one another's memory, and how fast that is.
//!
//! Every rank tries to read a number from every other, and to write one there; only if all can, collectives are run so,
//! because all ranks must do alike.

use std::fmt;
use std::time::{Duration, Instant};

use stepccl_bootstrap::Mesh;
use stepccl_engine::{Board, Engine, EngineError, Part, PartMut};

use crate::Error;
use crate::announcement::announcement_bytes;

/// Bytes that rank 0 reads to measure.
const PROBE_BYTES: usize = 256 << 10;
const REPEATS: u32 = 4;

/// First byte of a report: what the rank can do with the memory of all others.
const NOTHING: u8 = 0;
const READS: u8 = 1;
const WRITES: u8 = 2;

/// What came of the trial, the same on every rank.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SingleCopy {
    /// Every rank reads every other's memory.
    Works {
        /// Time of a read of a few bytes.
        latency: Duration,
        bytes_per_second: f64,
        /// Every rank writes every other's memory too.
        writes: bool,
    },
    /// It is not used, and why.
    Off(String),
}

/// Blocks below this many bytes are not worth a call to the system, however fast that looks.
const LEAST_BYTES: usize = 8 << 10;
/// Blocks of this many bytes are always worth it.
const ENOUGH_BYTES: usize = 1 << 20;
/// Blocks below this many bytes are moved by one of their ends: the other would have to be met first.
const BOTH_BYTES: usize = 256 << 10;
/// A read must be at least this much of a plain copy in the cache, or the way through staging,
/// with two copies and a look at a peer's cache, is as good.
const LEAST_SHARE: f64 = 0.2;

impl SingleCopy {
    /// Blocks of at least so many bytes are worth it.
    pub fn least_bytes(&self) -> usize {
        match self {
            // A read costs a call; half of what is moved in that time would be moved twice.
            Self::Works { latency, bytes_per_second, .. } => {
                let bytes = latency.as_secs_f64() * bytes_per_second / 2.0;
                (bytes as usize).clamp(LEAST_BYTES, ENOUGH_BYTES)
            }
            Self::Off(_) => usize::MAX,
        }
    }

    /// Blocks of at least so many bytes are moved from both ends, where one of them is the root's.
    pub const fn both_from(&self) -> usize {
        match self {
            Self::Works { writes: true, .. } => BOTH_BYTES,
            _ => usize::MAX,
        }
    }

    /// Whether it is used, where the user leaves that open or asks for it.
    fn chosen(self, wish: Option<bool>, copy_bytes_per_second: f64) -> Self {
        match self {
            Self::Works { bytes_per_second, .. }
                if wish != Some(true) && bytes_per_second < LEAST_SHARE * copy_bytes_per_second =>
            {
                Self::Off(format!(
                    "reading a peer's memory runs at {:.1} GB/s, a copy at {:.1} GB/s",
                    bytes_per_second / 1e9,
                    copy_bytes_per_second / 1e9
                ))
            }
            other => other,
        }
    }
}

impl fmt::Display for SingleCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Works { bytes_per_second, writes, .. } => {
                let one_way = if *writes { "" } else { ", reads only" };
                write!(f, "on, {:.1} GB/s{one_way}", bytes_per_second / 1e9)
            }
            Self::Off(reason) => write!(f, "off: {reason}"),
        }
    }
}

/// Try it out, unless the user does not want it. Every rank calls it with the same wish; `copy` is
/// the rate of a copy that all of them use.
pub(crate) fn probe(
    mesh: &mut Mesh,
    engine: &mut dyn Engine,
    wish: Option<bool>,
    copy_bytes_per_second: f64,
    deadline: Instant,
) -> Result<SingleCopy, Error> {
    let announced = engine.board(Board::Collective).map_or(0, |shape| shape.bytes);
    let off = if wish == Some(false) {
        Some("it was turned off, or algorithm, page, depth or channels were set")
    } else if mesh.ranks == 1 {
        Some("there is one rank")
    } else if announced < announcement_bytes(mesh.ranks) {
        Some("the posts of this engine have no room for the addresses of all ranks")
    } else {
        None
    };
    if let Some(reason) = off {
        return Ok(SingleCopy::Off(reason.to_owned()));
    }
    // What another process has at this address is another number. Behind it, a place for each rank
    // to write to.
    let mut numbers = vec![0; 1 + mesh.ranks as usize];
    numbers[0] = unlikely(mesh.rank);
    let memory = vec![1u8; PROBE_BYTES];
    let address = |p: *const u8| p.expose_provenance() as u64;
    let first = address(numbers.as_mut_ptr().cast_const().cast());
    let own = [first, numbers[0], address(memory.as_ptr())];
    let note: Vec<u8> = own.iter().flat_map(|w| w.to_le_bytes()).collect();
    let notes = mesh.exchange(&note, deadline)?;
    let mut verdict = Ok(());
    let mut figures = (Duration::ZERO, 0.0);
    let mut writes = true;
    for (rank, note) in (0..).zip(&notes).filter(|(rank, _)| *rank != mesh.rank) {
        let tried =
            note.as_deref().and_then(words).ok_or_else(|| format!("rank {rank} sent no address"));
        verdict = verdict.and(tried.and_then(|theirs| {
            try_rank(engine, rank, theirs)?;
            writes &= can_write(engine, rank, theirs[0] + 8 * (1 + u64::from(mesh.rank)));
            Ok(())
        }));
    }
    if mesh.rank == 0
        && let Some([small, _, large]) = notes.get(1).and_then(|n| words(n.as_deref()?))
        && verdict.is_ok()
    {
        match measure(engine, small, large) {
            Ok(found) => figures = found,
            Err(error) => verdict = Err(error.to_string()),
        }
    }
    // Nobody lets go of what others read before all have read it.
    let report = match &verdict {
        Ok(()) => {
            let mut report = vec![if writes { WRITES } else { READS }];
            report.extend((figures.0.as_nanos() as u64).to_le_bytes());
            report.extend(figures.1.to_le_bytes());
            report
        }
        Err(reason) => [&[NOTHING], reason.as_bytes()].concat(),
    };
    let reports = mesh.exchange(&report, deadline)?;
    drop((numbers, memory));
    let own = mesh.rank as usize;
    let all = reports.iter().enumerate().map(|(rank, theirs)| match theirs {
        Some(theirs) if rank != own => (rank, theirs.as_slice()),
        _ => (rank, report.as_slice()),
    });
    Ok(decide(all).chosen(wish, copy_bytes_per_second))
}

/// What all reports together say.
fn decide<'a>(reports: impl Iterator<Item = (usize, &'a [u8])>) -> SingleCopy {
    let mut works = SingleCopy::Off("no rank reported".to_owned());
    let mut all_write = true;
    for (rank, report) in reports {
        match report {
            [how @ (READS | WRITES), figures @ ..]
                if let Some([latency, rate]) = words(figures) =>
            {
                all_write &= *how == WRITES;
                if rank == 0 {
                    works = SingleCopy::Works {
                        latency: Duration::from_nanos(latency),
                        bytes_per_second: f64::from_bits(rate),
                        writes: true,
                    };
                }
            }
            [NOTHING, reason @ ..] => {
                return SingleCopy::Off(format!(
                    "rank {rank}: {}",
                    String::from_utf8_lossy(reason)
                ));
            }
            _ => return SingleCopy::Off(format!("rank {rank} reported nonsense")),
        }
    }
    if let SingleCopy::Works { writes, .. } = &mut works {
        *writes = all_write;
    }
    works
}

/// The numbers of a message of so many.
fn words<const N: usize>(message: &[u8]) -> Option<[u64; N]> {
    let (words, []) = message.as_chunks::<8>() else { return None };
    let words: &[[u8; 8]; N] = words.try_into().ok()?;
    Some(words.map(u64::from_le_bytes))
}

fn try_rank(engine: &mut dyn Engine, rank: u32, theirs: [u64; 3]) -> Result<(), String> {
    let [address, number, _] = theirs;
    let mut found = 0u64;
    let dst = PartMut { base: (&raw mut found).cast(), bytes: 8 };
    // SAFETY:
    // - `dst` is a word of eight bytes.
    unsafe { engine.pull(rank, address, dst, false) }.map_err(|error| error.to_string())?;
    if found == number { Ok(()) } else { Err(format!("rank {rank} is another process")) }
}

/// Whether a number written at `address` of `rank` is there afterwards.
fn can_write(engine: &mut dyn Engine, rank: u32, address: u64) -> bool {
    let given = unlikely(rank);
    let mut found = 0u64;
    let src = Part { base: (&raw const given).cast(), bytes: 8 };
    let dst = PartMut { base: (&raw mut found).cast(), bytes: 8 };
    // SAFETY:
    // - Both are a word of eight bytes, and the place at the other rank is there for this.
    unsafe {
        engine.push(rank, address, src).is_ok()
            && engine.pull(rank, address, dst, false).is_ok()
            && found == given
    }
}

/// Time of a short read from rank 1, and bytes a second of a long one.
fn measure(
    engine: &mut dyn Engine,
    small: u64,
    large: u64,
) -> Result<(Duration, f64), EngineError> {
    let latency = time(engine, small, 8)?;
    let rest = time(engine, large, PROBE_BYTES)?.saturating_sub(latency);
    Ok((latency, PROBE_BYTES as f64 / rest.as_secs_f64().max(1e-9)))
}

/// Best time of a read from rank 1.
fn time(engine: &mut dyn Engine, address: u64, bytes: usize) -> Result<Duration, EngineError> {
    let mut memory = vec![1u8; bytes];
    let mut best = Duration::MAX;
    for _ in 0..REPEATS {
        let dst = PartMut { base: memory.as_mut_ptr(), bytes };
        let start = Instant::now();
        // SAFETY:
        // - `dst` is all of `memory`.
        unsafe { engine.pull(1, address, dst, false)? };
        best = best.min(start.elapsed());
    }
    Ok(best)
}

/// A number that other memory is unlikely to hold.
fn unlikely(rank: u32) -> u64 {
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let time = time.map_or(0, |t| t.as_nanos() as u64);
    (time ^ u64::from(std::process::id()) << 40 ^ u64::from(rank))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn works(rate: f64) -> Vec<u8> {
        let mut report = vec![WRITES];
        report.extend(700u64.to_le_bytes());
        report.extend(rate.to_le_bytes());
        report
    }

    #[test]
    fn slow_reads_are_not_used_unless_asked_for() {
        let works = |rate| SingleCopy::Works {
            latency: Duration::from_nanos(1000),
            bytes_per_second: rate,
            writes: true,
        };
        assert_eq!(works(9e9).chosen(None, 20e9), works(9e9));
        assert!(matches!(works(1e9).chosen(None, 20e9), SingleCopy::Off(_)));
        assert_eq!(works(1e9).chosen(Some(true), 20e9), works(1e9));
        assert_eq!(works(40e9).least_bytes(), 20_000);
        assert_eq!(works(1e6).least_bytes(), LEAST_BYTES);
        assert_eq!(works(1e15).least_bytes(), ENOUGH_BYTES);
        let off = SingleCopy::Off(String::new());
        assert_eq!((off.least_bytes(), off.both_from()), (usize::MAX, usize::MAX));
        assert_eq!(works(1e9).both_from(), BOTH_BYTES);
    }

    #[test]
    fn all_must_be_able_to_and_rank_0_has_the_figures() {
        let reports = [works(2e9), works(0.0)];
        let decide = |reports: &[Vec<u8>]| decide((0..).zip(reports.iter().map(Vec::as_slice)));
        let latency = Duration::from_nanos(700);
        let read_at = 2e9;
        let all = |writes| SingleCopy::Works { latency, bytes_per_second: read_at, writes };
        assert_eq!(decide(&reports), all(true));
        let mut readers = reports.clone();
        readers[1][0] = READS;
        assert_eq!(decide(&readers), all(false));
        assert_eq!(all(false).both_from(), usize::MAX);
        let refused = [works(2e9), b"\0not permitted".to_vec()];
        assert_eq!(decide(&refused), SingleCopy::Off("rank 1: not permitted".to_owned()));
        for nonsense in [vec![], vec![1, 2], vec![9; 17]] {
            let answer = decide(&[works(2e9), nonsense]);
            assert!(matches!(answer, SingleCopy::Off(_)), "{answer:?}");
        }
    }
}
