//! A record at one moment.

use crate::header::{Header, word};
use crate::layout::{self, HEADER_BYTES, RECORD_BYTES, record};
use crate::{FormatError, Moment, Operation, Source, Timeline};

/// Records read together.
const CHUNK: usize = 64;

/// A copy of a record: its header, and the operations that were whole when it was made.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Whose it is.
    pub header: Header,
    /// Operations, in the order of their calls.
    pub operations: Vec<Operation>,
    /// Ticks as times; none where the header's clock does not fit to this machine's.
    pub timeline: Option<Timeline>,
}

impl Snapshot {
    /// Copy a record of `length` bytes from `source`. The writer goes on meanwhile.
    ///
    /// # Errors
    ///
    /// [`FormatError`].
    pub fn take(length: usize, mut source: impl Source) -> Result<Self, FormatError> {
        let mut bytes = vec![0; HEADER_BYTES];
        let (magic, rest) = bytes.split_at_mut(8);
        if length < HEADER_BYTES || !source.read(0, magic) {
            return Err(FormatError::Read { at: 0 });
        }
        // It is written last: where it is there, the rest is whole.
        source.fence();
        if !source.read(magic.len(), rest) {
            return Err(FormatError::Read { at: magic.len() });
        }
        let header = Header::parse(&bytes, length as u64)?;
        let mut operations = Vec::new();
        // Whoever changes a record changes its first word before and after: what is the same in a
        // copy before and in one after the copy was whole in between.
        let mut copies = [(); 3].map(|()| vec![0; CHUNK * RECORD_BYTES]);
        let all = header.records + layout::SPARE_RECORDS;
        for first in (0..all).step_by(CHUNK) {
            let bytes = CHUNK.min(all - first) * RECORD_BYTES;
            let at = layout::record_at(first);
            for copy in &mut copies {
                if !source.read(at, &mut copy[..bytes]) {
                    return Err(FormatError::Read { at });
                }
                source.fence();
            }
            let [before, copy, after] = copies.each_ref().map(|copy| &copy[..bytes]);
            operations.extend(chunk(before, copy, after));
        }
        operations.sort_unstable_by_key(|operation: &Operation| operation.sequence);
        let timeline = Timeline::new(header.clock, &header.made, &Moment::now(header.clock));
        Ok(Self { header, operations, timeline })
    }

    /// Whether it was made so short a time ago that the rate of its clock is not known well.
    #[must_use]
    pub fn is_young(&self) -> bool {
        const YOUNG_NS: u64 = 1_000_000;
        let now = Moment::now(self.header.clock).monotonic_ns;
        now.saturating_sub(self.header.made.monotonic_ns) < YOUNG_NS
    }

    /// Operations that have not ended, in the order of their calls.
    pub fn live(&self) -> impl Iterator<Item = &Operation> {
        self.operations.iter().filter(|operation| operation.phase.is_live())
    }

    /// The operation that ended last.
    #[must_use]
    pub fn last_ended(&self) -> Option<&Operation> {
        self.operations.iter().filter(|o| o.ended.is_some()).max_by_key(|o| o.ended)
    }
}

fn chunk<'a>(
    before: &'a [u8],
    copy: &'a [u8],
    after: &'a [u8],
) -> impl Iterator<Item = Operation> + 'a {
    let records = |bytes: &'a [u8]| bytes.as_chunks::<RECORD_BYTES>().0.iter();
    records(before).zip(records(copy)).zip(records(after)).filter_map(|((before, copy), after)| {
        Operation::parse(word(before, record::STAMP), copy, after)
    })
}
