//! Where everything lies in a flight record. `Documentation/flight-record.md` has the same tables.
//!
//! All words are 8 bytes in the byte order of the machine. A word made of parts lists them from
//! its lowest bit.

/// Name of the memfd, which makes it known to other processes.
pub const FILE_NAME: &str = "stepccl-flight";

/// First word: `STEPFLT` and the major version of the layout, as a number in the machine's order.
/// Another byte order or another major version is another word, and such a record is refused.
pub const MAGIC: u64 = u64::from_be_bytes(*b"STEPFLT1");

/// Bytes before the first record.
pub const HEADER_BYTES: usize = 4096;
/// Bytes of a record: two cache lines.
pub const RECORD_BYTES: usize = 128;
/// Words of a record.
pub const RECORD_WORDS: usize = RECORD_BYTES / 8;
/// Records behind those of the ring, for operations whose place is that of one that has not ended.
pub const SPARE_RECORDS: usize = 64;
/// Fewest records of a ring that is not off.
pub const MIN_RECORDS: usize = 16;
/// Most records of a ring, so 128 MiB.
pub const MAX_RECORDS: usize = 1 << 20;

/// Words of the header, counted in words from its start.
pub mod header {
    /// [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// Minor version, 32 bits; bytes of a record, 32 bits. Readers accept a larger minor version.
    pub const FORMAT: usize = 1;
    /// Records in the ring, a power of two.
    pub const RECORDS: usize = 2;
    /// Process id as the process itself sees it, 32 bits; its user, 32 bits.
    pub const PROCESS: usize = 3;
    /// Rank, 32 bits; ranks, 32 bits.
    pub const RANK: usize = 4;
    /// Number of the job: the same on every rank of a communicator and on no other one.
    pub const JOB: usize = 5;
    /// Kind of clock: see [`crate::ClockKind`].
    pub const CLOCK: usize = 6;
    /// Ticks of that clock when the record was made.
    pub const TICKS: usize = 7;
    /// CLOCK_MONOTONIC at that moment, in nanoseconds.
    pub const MONOTONIC: usize = 8;
    /// CLOCK_REALTIME at that moment, in nanoseconds.
    pub const REALTIME: usize = 9;
    /// State of the communicator, 32 bits (see [`crate::State`]); rank that is blamed, 32 bits.
    pub const STATE: usize = 10;
    /// Operations begun so far, and so the number of the next one.
    pub const OPERATIONS: usize = 16;
    /// Collectives begun so far.
    pub const COLLECTIVES: usize = 17;
    /// Operations without a record: so many others had not ended that there was no place.
    pub const LOST: usize = 18;
    /// First of [`COUNTERS`](super::COUNTERS) counters.
    pub const COUNTERS: usize = 24;
}

/// Counters in the header.
pub const COUNTERS: usize = 24;
/// Offset of the communicator's name, filled up with zeros.
pub const NAME_AT: usize = 384;
/// Bytes of it.
pub const NAME_BYTES: usize = 192;
/// Offset of the host's name.
pub const HOST_AT: usize = 576;
/// Bytes of it.
pub const HOST_BYTES: usize = 64;
/// Offset of the engine's name.
pub const ENGINE_AT: usize = 640;
/// Bytes of it.
pub const ENGINE_BYTES: usize = 24;
/// Offset of the tables of words: what the numbers in records mean.
pub const WORDS_AT: usize = 664;
/// Bytes of one word, filled up with zeros.
pub const WORD_BYTES: usize = 24;
/// Entries of the tables: kinds, types, operations, algorithms, paths, counters, in this order.
pub const TABLES: [usize; 6] = [32, 32, 16, 16, 16, COUNTERS];

/// Words of a record, counted in words from its start. The first line has what every operation
/// has; the second is only valid where [`DETAILS`] is set.
pub mod record {
    /// Phase, 3 bits (see [`crate::Phase`]); number of the operation on its communicator, 61 bits.
    /// Zero: never used.
    pub const STAMP: usize = 0;
    /// Ticks at the end.
    pub const ENDED: usize = 1;
    /// Number among the collectives of the communicator, the same on every rank;
    /// [`NONE`](super::NONE) for messages and where the turn has not come yet.
    pub const COLLECTIVE: usize = 2;
    /// Kind, type, operation, path, algorithm and flags, 8 bits each; pages in flight, 16 bits.
    pub const WHAT: usize = 3;
    /// Root or peer, 32 bits; tag, 32 bits, signed.
    pub const WITH: usize = 4;
    /// Bytes of the message on this rank.
    pub const BYTES: usize = 5;
    /// Ticks at the call.
    pub const CALLED: usize = 6;
    /// Elements of one block.
    pub const COUNT: usize = 7;
    /// Ticks at the start, after waiting for earlier operations.
    pub const STARTED: usize = 8;
    /// Bytes of a page of one block.
    pub const PAGE: usize = 9;
    /// First rank waited for, 32 bits; how many are waited for, 32 bits. Zero: none.
    pub const AWAITED: usize = 10;
    /// Lane, 32 bits; 32 bits unused.
    pub const LANE: usize = 11;
}

/// No number here.
pub const NONE: u64 = u64::MAX;
/// No rank here.
pub const NO_RANK: u32 = u32::MAX;
/// No entry of a table here: the tables are filled from 1 on.
pub const NO_WORD: u8 = 0;
/// Flag of a record: its second line is valid.
pub const DETAILS: u8 = 1;
/// Flag of a record: the ranks waited for are valid.
pub const AWAITS: u8 = 2;

/// A word of two halves, the low one first.
pub(crate) const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// Offset of record `at`.
#[must_use]
pub const fn record_at(at: usize) -> usize {
    HEADER_BYTES + at * RECORD_BYTES
}

/// Bytes of a whole file with a ring of `records` records.
#[must_use]
pub const fn file_bytes(records: usize) -> usize {
    record_at(records + SPARE_RECORDS)
}

const _: () = {
    let mut words = 0;
    let mut table = 0;
    while table < TABLES.len() {
        words += TABLES[table];
        table += 1;
    }
    assert!(WORDS_AT + words * WORD_BYTES <= HEADER_BYTES);
    assert!((header::COUNTERS + COUNTERS) * 8 <= NAME_AT);
    assert!(NAME_AT + NAME_BYTES <= HOST_AT && HOST_AT + HOST_BYTES <= ENGINE_AT);
    assert!(ENGINE_AT + ENGINE_BYTES <= WORDS_AT);
    // They are written word by word.
    assert!((NAME_AT | NAME_BYTES | HOST_AT | HOST_BYTES).is_multiple_of(8));
    assert!((ENGINE_AT | ENGINE_BYTES | WORDS_AT | WORD_BYTES).is_multiple_of(8));
};
