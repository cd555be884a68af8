//! Who touched which line of staging when, and whether the next touch is in order.
//!
//! Vector clocks: an access is in order with an earlier one where the rank has heard, through
//! flags, of what the other rank did up to that access.

use std::collections::HashMap;
use std::ops::Range;

use stepccl_engine::Token;

/// Bytes of a line; plans share nothing smaller.
const LINE: u64 = 64;

/// What each rank was known to have done.
pub(super) type Clock = Vec<u64>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
}

/// Lines of the staging of `owner`.
#[derive(Clone, Debug)]
pub(super) struct Touch {
    pub kind: Kind,
    pub owner: u32,
    pub bytes: Range<u64>,
}

impl Touch {
    fn lines(&self) -> Range<u64> {
        self.bytes.start / LINE..self.bytes.end.div_ceil(LINE)
    }

    fn meets(&self, other: &Self) -> bool {
        let (a, b) = (self.lines(), other.lines());
        self.owner == other.owner
            && a.start < b.end
            && b.start < a.end
            && (self.kind == Kind::Write || other.kind == Kind::Write)
    }
}

#[derive(Debug, Default)]
struct Line {
    /// Last write: rank and its time then.
    write: Option<(u32, u64)>,
    /// Last read by each rank since.
    reads: Vec<(u32, u64)>,
}

/// Clocks of all ranks and the history of all staging.
#[derive(Debug)]
pub(super) struct Shadow {
    clocks: Vec<Clock>,
    lines: HashMap<(u32, u64), Line>,
    /// Accesses that channels are still at.
    open: HashMap<(u32, Token), Vec<Touch>>,
}

impl Shadow {
    pub fn new(ranks: u32) -> Self {
        let clock = |rank| (0..ranks).map(|r| u64::from(r == rank)).collect();
        Self {
            clocks: (0..ranks).map(clock).collect(),
            lines: HashMap::new(),
            open: HashMap::new(),
        }
    }

    /// What `rank` tells with a signal.
    pub fn tell(&mut self, rank: u32) -> Clock {
        let told = self.clocks[rank as usize].clone();
        self.clocks[rank as usize][rank as usize] += 1;
        told
    }

    /// `rank` has seen a signal.
    pub fn hear(&mut self, rank: u32, told: &Clock) {
        for (own, other) in self.clocks[rank as usize].iter_mut().zip(told) {
            *own = (*own).max(*other);
        }
    }

    /// An access that is over when this returns.
    ///
    /// # Panics
    ///
    /// Where it is not in order with an earlier one.
    pub fn touch(&mut self, rank: u32, touches: &[Touch]) {
        self.check(rank, touches);
        self.record(rank, touches);
    }

    /// An access that goes on until `close`.
    pub fn open(&mut self, rank: u32, token: Token, touches: Vec<Touch>) {
        self.check(rank, &touches);
        self.open.insert((rank, token), touches);
    }

    /// The rank was told that its access is over.
    pub fn close(&mut self, rank: u32, token: Token) {
        let touches = self.open.remove(&(rank, token)).expect("an access that was opened");
        self.record(rank, &touches);
    }

    fn check(&self, rank: u32, touches: &[Touch]) {
        let clock = &self.clocks[rank as usize];
        let known = |(other, time): (u32, u64)| other == rank || time <= clock[other as usize];
        for touch in touches {
            for ((other, token), theirs) in &self.open {
                assert!(
                    !theirs.iter().any(|t| t.meets(touch)),
                    "rank {rank}: {touch:?} while a channel of rank {other} is at {token:?}: {theirs:?}"
                );
            }
            for at in touch.lines() {
                let Some(line) = self.lines.get(&(touch.owner, at)) else { continue };
                if let Some(write) = line.write {
                    assert!(
                        known(write),
                        "rank {rank}: {touch:?} of line {at}, not told of the write of rank {} at \
                         its time {}",
                        write.0,
                        write.1
                    );
                }
                if touch.kind == Kind::Write {
                    for read in &line.reads {
                        assert!(
                            known(*read),
                            "rank {rank}: {touch:?} of line {at}, not told of the read of rank {} \
                             at its time {}",
                            read.0,
                            read.1
                        );
                    }
                }
            }
        }
    }

    fn record(&mut self, rank: u32, touches: &[Touch]) {
        let now = self.clocks[rank as usize][rank as usize];
        for touch in touches {
            for at in touch.lines() {
                let line = self.lines.entry((touch.owner, at)).or_default();
                match touch.kind {
                    Kind::Write => *line = Line { write: Some((rank, now)), reads: Vec::new() },
                    Kind::Read => {
                        line.reads.retain(|(other, _)| *other != rank);
                        line.reads.push((rank, now));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(kind: Kind) -> Vec<Touch> {
        vec![Touch { kind, owner: 0, bytes: 64..100 }]
    }

    #[test]
    fn what_was_told_is_in_order() {
        let mut shadow = Shadow::new(2);
        shadow.touch(0, &at(Kind::Write));
        let told = shadow.tell(0);
        shadow.hear(1, &told);
        shadow.touch(1, &at(Kind::Read));
        let told = shadow.tell(1);
        shadow.hear(0, &told);
        shadow.touch(0, &at(Kind::Write));
    }

    #[test]
    #[should_panic(expected = "not told of the read of rank 1")]
    fn a_write_before_the_reader_has_told_is_found() {
        let mut shadow = Shadow::new(2);
        shadow.touch(0, &at(Kind::Write));
        let told = shadow.tell(0);
        shadow.hear(1, &told);
        shadow.touch(1, &at(Kind::Read));
        shadow.touch(0, &at(Kind::Write));
    }

    #[test]
    #[should_panic(expected = "not told of the write of rank 0")]
    fn a_read_before_the_writer_has_told_is_found() {
        let mut shadow = Shadow::new(2);
        shadow.touch(0, &at(Kind::Write));
        shadow.touch(1, &at(Kind::Read));
    }

    #[test]
    #[should_panic(expected = "not told of the read of rank 1")]
    fn a_signal_before_a_channel_is_done_does_not_count() {
        let mut shadow = Shadow::new(2);
        shadow.open(1, Token(1), at(Kind::Read));
        let told = shadow.tell(1);
        shadow.hear(0, &told);
        shadow.close(1, Token(1));
        shadow.touch(0, &at(Kind::Write));
    }
}
