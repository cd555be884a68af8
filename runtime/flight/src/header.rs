//! The header of a record, read from bytes that another process may have made up.

use serde::Serialize;

use crate::layout::{self, HEADER_BYTES, TABLES, WORD_BYTES, header};
use crate::text::clean;
use crate::{ClockKind, Moment, State};

/// Why bytes are no record that this version can read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// Shorter than a header and its records, or longer than any.
    #[error("a flight record of {bytes} bytes; this version reads {at_least} to {at_most}")]
    Length {
        /// Length found.
        bytes: u64,
        /// Shortest possible.
        at_least: usize,
        /// Longest possible.
        at_most: usize,
    },
    /// Another first word.
    #[error(
        "starts with {found:#018x}: no flight record, one of another version, or not yet ready"
    )]
    Magic {
        /// Word found.
        found: u64,
    },
    /// A value that cannot be.
    #[error("its header says {what} = {value}, which cannot be")]
    Value {
        /// Which.
        what: &'static str,
        /// What it says.
        value: u64,
    },
    /// It could not be read to its end.
    #[error("could not be read at byte {at}: its process may have ended")]
    Read {
        /// Where.
        at: usize,
    },
}

/// What the numbers in records mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    tables: [Vec<String>; 6],
}

/// The header of a record.
#[derive(Clone, Debug)]
pub struct Header {
    /// Records in the ring.
    pub records: usize,
    /// Process, as it sees itself.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Rank.
    pub rank: u32,
    /// Ranks of the communicator.
    pub ranks: u32,
    /// Number that the ranks of a communicator have in common.
    pub job: u64,
    /// Clock of the ticks.
    pub clock: ClockKind,
    /// When the record was made.
    pub made: Moment,
    /// State of the communicator.
    pub state: State,
    /// Rank that is blamed for its failure.
    pub culprit: Option<u32>,
    /// Operations begun.
    pub operations: u64,
    /// Collectives begun, and so the number of the next one.
    pub collectives: u64,
    /// Operations that have no record.
    pub lost: u64,
    /// Counters of the engine that have a name.
    pub counters: Vec<Counter>,
    /// Name of the communicator.
    pub communicator: String,
    /// Name of the host.
    pub host: String,
    /// Engine that moves the bytes.
    pub engine: String,
    /// What the numbers in records mean.
    pub words: Words,
}

/// One counter of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counter {
    /// What is counted.
    pub name: String,
    /// How often, or how many bytes.
    pub value: u64,
}

impl Words {
    fn parse(bytes: &[u8]) -> Self {
        let mut rest = bytes.chunks_exact(WORD_BYTES);
        let tables = TABLES.map(|entries| rest.by_ref().take(entries).map(clean).collect());
        Self { tables }
    }

    fn word(&self, table: usize, what: &str, number: u8) -> String {
        match self.tables[table].get(usize::from(number)) {
            Some(word) if !word.is_empty() => word.clone(),
            _ => format!("{what}{number}"),
        }
    }

    fn optional(&self, table: usize, what: &str, number: u8) -> Option<String> {
        (number != layout::NO_WORD).then(|| self.word(table, what, number))
    }

    /// Name of a collective or message; of an unknown one a made-up name with its number.
    #[must_use]
    pub fn kind(&self, number: u8) -> String {
        self.word(0, "kind", number)
    }

    /// Name of a type.
    #[must_use]
    pub fn dtype(&self, number: u8) -> Option<String> {
        self.optional(1, "type", number)
    }

    /// Name of a reduction.
    #[must_use]
    pub fn op(&self, number: u8) -> Option<String> {
        self.optional(2, "op", number)
    }

    /// Name of an algorithm.
    #[must_use]
    pub fn algorithm(&self, number: u8) -> Option<String> {
        self.optional(3, "algorithm", number)
    }

    /// Name of a path.
    #[must_use]
    pub fn path(&self, number: u8) -> Option<String> {
        self.optional(4, "path", number)
    }
}

impl Header {
    /// From the first [`HEADER_BYTES`] of a file of `length` bytes.
    ///
    /// # Errors
    ///
    /// [`FormatError`].
    pub fn parse(bytes: &[u8], length: u64) -> Result<Self, FormatError> {
        let (at_least, at_most) =
            (layout::file_bytes(layout::MIN_RECORDS), layout::file_bytes(layout::MAX_RECORDS));
        if bytes.len() < HEADER_BYTES || length < at_least as u64 || length > at_most as u64 {
            return Err(FormatError::Length { bytes: length, at_least, at_most });
        }
        let word = |at: usize| word(bytes, at);
        let magic = word(header::MAGIC);
        if magic != layout::MAGIC {
            return Err(FormatError::Magic { found: magic });
        }
        let bad = |what, value| Err(FormatError::Value { what, value });
        let (_, record_bytes) = parts(word(header::FORMAT));
        if record_bytes as usize != layout::RECORD_BYTES {
            return bad("bytes of a record", u64::from(record_bytes));
        }
        let records = word(header::RECORDS);
        let fits = usize::try_from(records).is_ok_and(|records| {
            records.is_power_of_two()
                && (layout::MIN_RECORDS..=layout::MAX_RECORDS).contains(&records)
                && layout::file_bytes(records) as u64 <= length
        });
        if !fits {
            return bad("records", records);
        }
        let (rank, ranks) = parts(word(header::RANK));
        if rank >= ranks {
            return bad("rank", u64::from(rank));
        }
        let Some(clock) = ClockKind::from_number(word(header::CLOCK)) else {
            return bad("clock", word(header::CLOCK));
        };
        let (pid, uid) = parts(word(header::PROCESS));
        let (state, culprit) = parts(word(header::STATE));
        let words = Words::parse(&bytes[layout::WORDS_AT..HEADER_BYTES]);
        let counters = (words.tables[5].iter().enumerate())
            .filter(|(at, name)| *at > 0 && !name.is_empty())
            .map(|(at, name)| Counter {
                name: name.clone(),
                value: word(header::COUNTERS + at - 1),
            })
            .collect();
        let text = |at: usize, long: usize| clean(&bytes[at..at + long]);
        Ok(Self {
            records: records as usize,
            pid,
            uid,
            rank,
            ranks,
            job: word(header::JOB),
            clock,
            made: Moment {
                ticks: word(header::TICKS),
                monotonic_ns: word(header::MONOTONIC),
                realtime_ns: word(header::REALTIME),
            },
            state: State::from_number(state),
            culprit: (culprit != layout::NO_RANK).then_some(culprit),
            operations: word(header::OPERATIONS),
            collectives: word(header::COLLECTIVES),
            lost: word(header::LOST),
            counters,
            communicator: text(layout::NAME_AT, layout::NAME_BYTES),
            host: text(layout::HOST_AT, layout::HOST_BYTES),
            engine: text(layout::ENGINE_AT, layout::ENGINE_BYTES),
            words,
        })
    }
}

/// Word `at` of `bytes`; 0 behind their end.
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    let from = at * 8;
    let word = bytes.get(from..from + 8).and_then(|word| word.try_into().ok());
    word.map_or(0, u64::from_ne_bytes)
}

/// The low and the high half of a word.
pub(crate) const fn parts(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}
