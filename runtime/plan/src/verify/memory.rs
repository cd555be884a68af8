//! Symbolic memory of one rank.

use std::collections::BTreeMap;

use super::contributions::Value;
use crate::{Place, Span};

/// Step index of what was there before the round.
pub(super) const INITIAL: u32 = u32::MAX;

/// Equal parts that were written together.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub end: u32,
    pub value: Value,
    pub writer: u32,
    pub step: u32,
}

/// All memory of one rank: segments by place, block and first part.
#[derive(Default)]
pub(super) struct Memory(BTreeMap<(Place, u32, u32), Segment>);

impl Memory {
    /// The segment that holds `part`, if that was written.
    pub fn at(&self, place: Place, block: u32, part: u32) -> Option<&Segment> {
        let (key, segment) = self.0.range(..=(place, block, part)).next_back()?;
        (key.0 == place && key.1 == block && segment.end > part).then_some(segment)
    }

    /// Write `span`, over what was there before the round only.
    ///
    /// Returns the segment of this round that is in the way, if there is one.
    pub fn write(&mut self, span: Span, segment: Segment) -> Result<(), Segment> {
        let (place, block) = (span.place, span.block);
        let end = span.first + span.count;
        // Cut what was there at both ends of the span, then drop what lies inside.
        for cut in [span.first, end] {
            if let Some((key, whole)) = self.0.range_mut(..(place, block, cut)).next_back()
                && key.0 == place
                && key.1 == block
                && whole.end > cut
            {
                let rest = whole.clone();
                whole.end = cut;
                self.0.insert((place, block, cut), rest);
            }
        }
        let inside = || (place, block, span.first)..(place, block, end);
        if let Some((_, taken)) = self.0.range(inside()).find(|(_, s)| s.step != INITIAL) {
            return Err(taken.clone());
        }
        while let Some((key, _)) = self.0.range(inside()).next() {
            let key = *key;
            self.0.remove(&key);
        }
        self.0.insert((place, block, span.first), Segment { end, ..segment });
        Ok(())
    }
}
