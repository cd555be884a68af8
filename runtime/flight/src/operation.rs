//! One operation, read from bytes that another process may have made up.

use crate::header::{parts, word};
use crate::layout::{self, RECORD_BYTES, record};
use crate::phase::Stamp;
use crate::{Phase, Timeline, Words};

/// One operation of a record. Times are ticks of the record's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Number on its communicator.
    pub sequence: u64,
    /// How far it is.
    pub phase: Phase,
    /// Number among the collectives.
    pub collective: Option<u64>,
    /// Kind, as a place in the table of kinds.
    pub kind: u8,
    /// Type, likewise, or [`layout::NO_WORD`].
    pub dtype: u8,
    /// Reduction, likewise, or [`layout::NO_WORD`].
    pub op: u8,
    /// Path, likewise, or [`layout::NO_WORD`].
    pub path: u8,
    /// Algorithm, likewise, or [`layout::NO_WORD`].
    pub algorithm: u8,
    /// Root or peer.
    pub with: Option<u32>,
    /// Tag of a message.
    pub tag: i32,
    /// Bytes of the message on this rank.
    pub bytes: u64,
    /// Elements of one block.
    pub count: u64,
    /// When it was called.
    pub called: u64,
    /// When it started, if it has.
    pub started: Option<u64>,
    /// When it ended, if it has.
    pub ended: Option<u64>,
    /// Ranks waited for when it was last looked at: one of them, and how many.
    pub awaited: Option<(u32, u32)>,
    /// What is known of operations that were started by the executor.
    pub details: Option<Details>,
}

/// What is known of operations that were started by the executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Details {
    /// Bytes of a page of one block; 0: none.
    pub page_bytes: u64,
    /// Pages in flight.
    pub depth: u16,
    /// Queue it ran in.
    pub lane: u32,
}

impl Operation {
    /// From a copy of a record, its first word before that, and a second copy made behind it.
    /// None where the place was never used or changed meanwhile.
    #[must_use]
    pub fn parse(
        before: u64,
        copy: &[u8; RECORD_BYTES],
        after: &[u8; RECORD_BYTES],
    ) -> Option<Self> {
        let (later, word) = (|at: usize| word(after, at), |at: usize| word(copy, at));
        let Stamp { sequence, phase } = Stamp::parse(before)?;
        let held = [word(record::STAMP), later(record::STAMP)] == [before; 2];
        if !held || phase == Phase::Writing {
            return None;
        }
        let [kind, dtype, op, path, algorithm, flags, low, high] = word(record::WHAT).to_le_bytes();
        let (with, tag) = parts(word(record::WITH));
        let called = word(record::CALLED);
        let collective = word(record::COLLECTIVE);
        let has_details = flags & layout::DETAILS != 0 && phase != Phase::Queued;
        let details = has_details.then(|| Details {
            page_bytes: word(record::PAGE),
            depth: u16::from_le_bytes([low, high]),
            lane: parts(word(record::LANE)).0,
        });
        let started = match details {
            Some(_) => Some(word(record::STARTED)),
            None if phase == Phase::Running || phase == Phase::Done => Some(called),
            None => None,
        };
        let (first, ranks) = parts(word(record::AWAITED));
        // The flag may be set between the stamps: only what is read behind it is as new.
        let is_current = word(record::AWAITED) == later(record::AWAITED);
        let awaits =
            flags & layout::AWAITS != 0 && is_current && phase == Phase::Running && ranks > 0;
        Some(Self {
            sequence,
            phase,
            collective: (collective != layout::NONE).then_some(collective),
            kind,
            dtype,
            op,
            path,
            algorithm: if has_details { algorithm } else { layout::NO_WORD },
            with: (with != layout::NO_RANK).then_some(with),
            tag: tag.cast_signed(),
            bytes: word(record::BYTES),
            count: word(record::COUNT),
            called,
            started,
            ended: (!phase.is_live()).then(|| word(record::ENDED)),
            awaited: awaits.then_some((first, ranks)),
            details,
        })
    }

    /// Nanoseconds from the call to the start, or to now while it waits.
    #[must_use]
    pub fn queued_ns(&self, line: &Timeline) -> u64 {
        let until = self.started.or(self.ended).unwrap_or(line.now().ticks);
        line.span_ns(self.called, until)
    }

    /// Nanoseconds from the start to the end, or to now while it runs.
    #[must_use]
    pub fn ran_ns(&self, line: &Timeline) -> u64 {
        let until = self.ended.unwrap_or(line.now().ticks);
        self.started.map_or(0, |started| line.span_ns(started, until))
    }

    /// `#17 all_reduce sum float`, `#3 send to 1 tag 5`: what it is, without its size.
    #[must_use]
    pub fn title(&self, words: &Words) -> String {
        let mut text = format!("#{} {}", self.sequence, words.kind(self.kind));
        for word in [words.op(self.op), words.dtype(self.dtype)].into_iter().flatten() {
            text += " ";
            text += &word;
        }
        match (self.with, self.collective) {
            (Some(root), Some(_)) => text += &format!(" root {root}"),
            (Some(peer), None) => text += &format!(" with {peer} tag {}", self.tag),
            (None, _) => {}
        }
        text
    }
}
