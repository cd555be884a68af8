//! Runs operations to their end, with a deadline.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::{Address, Completion, Engine, EngineError, Operation, Staging, Submission, Token};

/// Longest time anything in a check may take; far above what a loaded machine needs.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Longest park, so that a lost wake-up shows as lateness and not as a hang.
pub(super) const NAP: Duration = Duration::from_millis(20);

/// Do one operation.
pub(super) fn run(engine: &mut dyn Engine, operation: &Operation<'_>) -> Result<u64, EngineError> {
    match submit(engine, operation, &mut HashMap::new())? {
        None => Ok(length(operation)),
        Some(token) => finish(engine, HashMap::from([(token, length(operation))]))
            .remove(&token)
            .expect("the end of the operation"),
    }
}

/// Copy, which must work.
pub(super) fn copy(engine: &mut dyn Engine, src: Address, dst: Address, bytes: u64) {
    let moved = run(engine, &Operation::Copy { src, dst, bytes });
    assert_eq!(moved, Ok(bytes), "copy of {bytes} bytes from {src} to {dst}");
}

/// Start one operation; while the engine is full, ends go to `ended`.
pub(super) fn submit(
    engine: &mut dyn Engine,
    operation: &Operation<'_>,
    ended: &mut HashMap<Token, Result<u64, EngineError>>,
) -> Result<Option<Token>, EngineError> {
    let start = Instant::now();
    loop {
        match engine.submit(operation)? {
            Submission::Done => return Ok(None),
            Submission::InProgress(token) => return Ok(Some(token)),
            Submission::Full => {
                assert!(start.elapsed() < PATIENCE, "full for ever: {operation:?}");
                if reap(engine, ended) == 0 {
                    engine.park(&mut |_| false, NAP).expect("a park");
                }
            }
        }
    }
}

/// Wait for the end of all `tokens`, whose operations have so many bytes.
pub(super) fn finish(
    engine: &mut dyn Engine,
    tokens: HashMap<Token, u64>,
) -> HashMap<Token, Result<u64, EngineError>> {
    let mut ended = HashMap::new();
    let start = Instant::now();
    while ended.len() < tokens.len() {
        if reap(engine, &mut ended) == 0 {
            assert!(start.elapsed() < PATIENCE, "{} of {} ended", ended.len(), tokens.len());
            engine.park(&mut |_| false, NAP).expect("a park");
        }
    }
    for (token, bytes) in tokens {
        assert_eq!(ended.get(&token), Some(&Ok(bytes)), "{token:?}");
    }
    ended
}

/// Take what has ended; returns how many.
pub(super) fn reap(
    engine: &mut dyn Engine,
    ended: &mut HashMap<Token, Result<u64, EngineError>>,
) -> usize {
    let mut completions = Vec::new();
    engine.reap(&mut completions).expect("a reap");
    let count = completions.len();
    for Completion { token, result } in completions {
        assert!(ended.insert(token, result).is_none(), "{token:?} ended twice");
    }
    count
}

/// Wait until `flag` of `from` is at least `value`, parking at once.
pub(super) fn wait(engine: &mut dyn Engine, from: u32, flag: u32, value: u64) -> u64 {
    let start = Instant::now();
    loop {
        let seen = engine.flag(from, flag).expect("a flag");
        if seen >= value {
            return seen;
        }
        let waited = start.elapsed();
        assert!(waited < PATIENCE, "flag {flag} of rank {from} is {seen} and not {value}");
        engine
            .park(
                &mut |engine| engine.flag(from, flag).is_ok_and(|seen| seen >= value),
                PATIENCE - waited,
            )
            .expect("a park");
    }
}

/// Staging of `rank`, where the engine reaches it, and checked to be usable.
pub(super) fn staging(engine: &dyn Engine, rank: u32) -> Option<Staging> {
    let staging = engine.staging(rank)?;
    assert!(staging.bytes >= 256 << 10, "rank {rank} has {} bytes of staging", staging.bytes);
    assert_eq!(staging.base.offset() % 4096, 0, "staging of rank {rank}");
    Some(staging)
}

/// Address in staging.
pub(super) fn within(staging: Staging, offset: u64) -> Address {
    assert!(offset <= staging.bytes);
    staging.base.checked_add(offset).expect("an address of staging")
}

/// Numbers that look random and are the same every time.
#[derive(Debug)]
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    /// The next number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// That many bytes.
    pub(super) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

fn length(operation: &Operation<'_>) -> u64 {
    match operation {
        Operation::Copy { bytes, .. } => *bytes,
        Operation::Reduce { count, dtype, .. } => count * dtype.size() as u64,
    }
}
