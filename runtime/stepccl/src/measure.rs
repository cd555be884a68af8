//! Measures what the cost model needs: copy rate, add rate and signal latency of this node.
//!
//! A few milliseconds at start-up. Rank 0 measures, all ranks use its figures, so that all choose
//! the same plans.

use std::time::{Duration, Instant};

use stepccl_engine::{Address, Engine, EngineError, Operation, Submission, UserMemory};
use stepccl_plan::{DType, Figures, ReduceOp, Targets};

/// Bytes of a probe; fits the caches, like a page.
const PROBE_BYTES: usize = 128 << 10;
const REPEATS: usize = 8;
/// Bytes of a probe between nodes.
const NETWORK_BYTES: usize = 256 << 10;
/// A slow network is measured once and not more often.
const NETWORK_LIMIT: Duration = Duration::from_millis(50);
/// Longest sleep while a probe is under way; a lost link ends it with an error.
const NAP: Duration = Duration::from_millis(20);
/// Looks for the end of a probe on a channel before this thread sleeps; some 100 us.
const LOOKS_BEFORE_NAP: u32 = 2000;
/// A channel that takes longer for a probe does not run.
const CHANNEL_LIMIT: Duration = Duration::from_secs(10);
/// Signals sent each way.
const SIGNALS: u64 = 200;
/// Values that the flag of the signals has not had after them, which begin with 2.
pub(crate) const AFTER_SIGNALS: u64 = SIGNALS + 2;
/// A pair that takes longer shares a core; what it measures is the scheduler.
const SIGNAL_LIMIT: Duration = Duration::from_millis(20);

/// Bytes a second that a copy writes and that a sum of two f32 sources reads, between memory of
/// this process and staging.
pub(crate) fn rates(
    engine: &mut dyn Engine,
    staging: Address,
    staging_bytes: usize,
) -> Result<(f64, f64), EngineError> {
    let bytes = PROBE_BYTES.min(staging_bytes / 2) / 64 * 64;
    let mut memory = vec![1.0f32; bytes / 4];
    let base = memory.as_mut_ptr().cast();
    // SAFETY:
    // - `memory` lives and is not touched until `unregister` below has returned.
    let region = unsafe {
        engine.register(UserMemory {
            base,
            bytes: bytes as u64,
            writable: true,
            streaming: false,
        })?
    };
    let own = Address::start_of(region);
    let other = staging.checked_add(bytes as u64)?;
    let srcs = [own, staging];
    let copy = Operation::Copy { src: own, dst: staging, bytes: bytes as u64 };
    let sum = Operation::Reduce {
        srcs: &srcs,
        dst: other,
        count: (bytes / 4) as u64,
        dtype: DType::F32,
        op: ReduceOp::Sum,
        divisor: 1,
        scale: None,
    };
    let copy = rate(engine, &copy, bytes);
    let sum = rate(engine, &sum, bytes);
    engine.unregister(region)?;
    // A sum reads both sources.
    Ok((copy?, 2.0 * sum?))
}

fn rate(
    engine: &mut dyn Engine,
    operation: &Operation<'_>,
    bytes: usize,
) -> Result<f64, EngineError> {
    let mut best = f64::INFINITY;
    let mut completions = Vec::new();
    for _ in 0..REPEATS {
        let start = Instant::now();
        if let Submission::InProgress(_) = engine.submit(operation)? {
            let mut looks = 0;
            while completions.is_empty() {
                engine.reap(&mut completions)?;
                looks += 1;
                // A channel on this core may get it only while this thread sleeps.
                if looks > LOOKS_BEFORE_NAP && completions.is_empty() {
                    engine.park(&mut |_| false, NAP)?;
                }
                if start.elapsed() > CHANNEL_LIMIT {
                    return Err(EngineError::System {
                        call: "a copy by a channel",
                        message: format!(
                            "{bytes} bytes took more than {CHANNEL_LIMIT:?}; do its threads run? \
                             STEPCCL_DMA_CONCURRENCY=0 does without"
                        ),
                    });
                }
            }
            completions.clear();
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(bytes as f64 / best.max(1e-9))
}

/// Time of a signal from one rank to another, where ranks 0 and 1 look all the time.
pub(crate) fn signal_latency(
    engine: &mut dyn Engine,
    rank: u32,
    flag: u32,
) -> Result<Option<Duration>, EngineError> {
    signal_latency_with(engine, rank == 0, 1 - rank, flag)
}

/// The same for any pair, of which one begins.
pub(crate) fn signal_latency_with(
    engine: &mut dyn Engine,
    begins: bool,
    peer: u32,
    flag: u32,
) -> Result<Option<Duration>, EngineError> {
    let start = Instant::now();
    let mut best = None::<Duration>;
    let mut sent = start;
    for value in 2..=SIGNALS + 1 {
        if begins {
            sent = Instant::now();
            engine.signal(Targets::One(peer), flag, value)?;
        }
        let mut looks = 0u32;
        while engine.flag(peer, flag)? < value {
            std::hint::spin_loop();
            looks += 1;
            if looks.is_multiple_of(1024) {
                if start.elapsed() > SIGNAL_LIMIT {
                    // Let the peer out of its loop too.
                    engine.signal(Targets::One(peer), flag, SIGNALS + 1)?;
                    return Ok(None);
                }
                std::thread::yield_now();
            }
        }
        if !begins {
            engine.signal(Targets::One(peer), flag, value)?;
        } else {
            let half = sent.elapsed() / 2;
            best = Some(best.map_or(half, |b| b.min(half)));
        }
    }
    Ok(best)
}

/// Latency in nanoseconds and bytes a second of the way to the staging of a rank of another node,
/// which need not do anything for it.
pub(crate) fn network(
    engine: &mut dyn Engine,
    theirs: Address,
    staging_bytes: usize,
) -> Result<(f64, f64), EngineError> {
    let bytes = NETWORK_BYTES.min(staging_bytes / 64 * 64);
    let mut memory = vec![0u8; bytes];
    let base = memory.as_mut_ptr();
    // SAFETY:
    // - `memory` lives and is not touched until `unregister` below has returned.
    let region = unsafe {
        engine.register(UserMemory {
            base,
            bytes: bytes as u64,
            writable: true,
            streaming: false,
        })?
    };
    let own = Address::start_of(region);
    let start = Instant::now();
    // There and back are two ways.
    let short = shortest(engine, (theirs, own), 8, start)?;
    let long = shortest(engine, (theirs, own), bytes as u64, start)?;
    engine.unregister(region)?;
    let rate = bytes as f64 / (long.saturating_sub(short)).as_secs_f64().max(1e-6);
    Ok((short.as_secs_f64() / 2.0 * 1e9, rate))
}

fn shortest(
    engine: &mut dyn Engine,
    (src, dst): (Address, Address),
    bytes: u64,
    start: Instant,
) -> Result<Duration, EngineError> {
    let mut best = Duration::MAX;
    let mut completions = Vec::new();
    for _ in 0..REPEATS {
        let begin = Instant::now();
        if let Submission::InProgress(_) = engine.submit(&Operation::Copy { src, dst, bytes })? {
            while completions.is_empty() {
                engine.reap(&mut completions)?;
                if completions.is_empty() {
                    engine.park(&mut |_| false, NAP)?;
                }
            }
            completions.pop().map_or(Ok(0), |completion| completion.result)?;
        }
        best = best.min(begin.elapsed());
        if start.elapsed() > NETWORK_LIMIT {
            break;
        }
    }
    Ok(best)
}

/// Bytes of figures as a message.
pub(crate) const MESSAGE_BYTES: usize = 48;

/// Figures as a message between ranks.
pub(crate) fn encode(figures: &Figures) -> Vec<u8> {
    [
        figures.local.latency_ns,
        figures.local.bytes_per_second,
        figures.network.latency_ns,
        figures.network.bytes_per_second,
        figures.copy_bytes_per_second,
        figures.reduce_bytes_per_second,
    ]
    .iter()
    .flat_map(|f| f.to_le_bytes())
    .collect()
}

/// Figures from a message; `None` where it is not one.
pub(crate) fn decode(message: &[u8], defaults: Figures) -> Option<Figures> {
    let (numbers, []) = message.as_chunks::<8>() else { return None };
    let [latency, link, far_latency, far_link, copy, reduce] =
        <[f64; 6]>::try_from(numbers.iter().map(|n| f64::from_le_bytes(*n)).collect::<Vec<_>>())
            .ok()?;
    let mut figures = defaults;
    figures.local.latency_ns = latency;
    figures.local.bytes_per_second = link;
    figures.network.latency_ns = far_latency;
    figures.network.bytes_per_second = far_link;
    figures.copy_bytes_per_second = copy;
    figures.reduce_bytes_per_second = reduce;
    let sane = |f: f64| f.is_finite() && f > 0.0;
    [latency, link, far_latency, far_link, copy, reduce].into_iter().all(sane).then_some(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_survive_the_way() {
        let mut figures = Figures { copy_bytes_per_second: 12.5e9, ..Figures::default() };
        figures.local.latency_ns = 77.0;
        assert_eq!(decode(&encode(&figures), Figures::default()), Some(figures));
    }

    #[test]
    fn nonsense_is_no_figure() {
        assert_eq!(decode(&[], Figures::default()), None);
        assert_eq!(decode(&[0; 48], Figures::default()), None);
        assert_eq!(decode(&[0xff; 48], Figures::default()), None);
        assert_eq!(decode(&[1; 49], Figures::default()), None);
    }
}
