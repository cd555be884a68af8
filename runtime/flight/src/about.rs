//! What the header of a record says, when it is made.

use nix::unistd::{Pid, Uid};

use crate::layout::{self, RECORD_BYTES, TABLES, WORD_BYTES, header, pair};
use crate::{AtomicWords, ClockKind, Moment, State};

/// Whose record it is.
#[derive(Clone, Debug)]
pub struct About<'a> {
    /// Name of the communicator.
    pub communicator: &'a str,
    /// Number that the ranks of this communicator have in common, and no other ones.
    pub job: u64,
    /// Rank.
    pub rank: u32,
    /// Ranks of the communicator.
    pub ranks: u32,
    /// Engine that moves the bytes.
    pub engine: &'a str,
    /// What the numbers in records mean.
    pub vocabulary: Vocabulary<'a>,
}

/// What the numbers in records mean: 0 nothing, 1 the first of its table. They stand in the header, so
/// that a reader of another version knows them too.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary<'a> {
    /// Collectives and messages.
    pub kinds: Vec<&'a str>,
    /// Types of elements.
    pub dtypes: Vec<&'a str>,
    /// Reductions.
    pub ops: Vec<&'a str>,
    /// Algorithms.
    pub algorithms: Vec<&'a str>,
    /// Paths that an operation took.
    pub paths: Vec<&'a str>,
    /// Counters of the engine.
    pub counters: Vec<&'a str>,
}

impl About<'_> {
    /// Write the header of a ring of `records` records.
    pub(crate) fn write(&self, to: impl AtomicWords, records: usize, clock: ClockKind) {
        put(to, layout::NAME_AT, &padded::<{ layout::NAME_BYTES }>(self.communicator));
        put(to, layout::HOST_AT, &padded::<{ layout::HOST_BYTES }>(&host_name()));
        put(to, layout::ENGINE_AT, &padded::<{ layout::ENGINE_BYTES }>(self.engine));
        put(to, layout::WORDS_AT, &self.vocabulary.encode());
        let made = Moment::now(clock);
        let process = pair(Pid::this().as_raw().cast_unsigned(), Uid::effective().as_raw());
        let values = [
            (header::FORMAT, pair(0, RECORD_BYTES as u32)),
            (header::RECORDS, records as u64),
            (header::PROCESS, process),
            (header::RANK, pair(self.rank, self.ranks)),
            (header::JOB, self.job),
            (header::CLOCK, clock.number()),
            (header::TICKS, made.ticks),
            (header::MONOTONIC, made.monotonic_ns),
            (header::REALTIME, made.realtime_ns),
            (header::STATE, pair(State::Open.number(), layout::NO_RANK)),
        ];
        for (at, value) in values {
            to.store_relaxed(at, value);
        }
        // Readers look at it first: with it, the header is whole.
        to.store_release(header::MAGIC, layout::MAGIC);
    }
}

/// Write whole words of text from byte `at` on.
fn put(to: impl AtomicWords, at: usize, text: &[u8]) {
    for (word, bytes) in text.as_chunks::<8>().0.iter().enumerate() {
        to.store_relaxed(at / 8 + word, u64::from_ne_bytes(*bytes));
    }
}

fn host_name() -> String {
    nix::sys::utsname::uname()
        .map(|names| names.nodename().to_string_lossy().into_owned())
        .unwrap_or_default()
}

impl Vocabulary<'_> {
    /// The tables as bytes: what does not fit is cut.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let tables =
            [&self.kinds, &self.dtypes, &self.ops, &self.algorithms, &self.paths, &self.counters];
        let mut bytes = Vec::new();
        for (table, entries) in tables.into_iter().zip(TABLES) {
            for at in 0..entries {
                let word = at.checked_sub(1).and_then(|at| table.get(at)).copied();
                bytes.extend(padded::<WORD_BYTES>(word.unwrap_or_default()));
            }
        }
        bytes
    }
}

/// `text` in a field of `N` bytes, cut between characters and filled up with zeros.
pub(crate) fn padded<const N: usize>(text: &str) -> [u8; N] {
    let end = text.floor_char_boundary(N);
    let mut field = [0; N];
    field[..end].copy_from_slice(&text.as_bytes()[..end]);
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(padded::<4>("ab"), *b"ab\0\0");
        assert_eq!(padded::<4>("abcdef"), *b"abcd");
        assert_eq!(padded::<4>("abcü"), *b"abc\0");
    }
}
