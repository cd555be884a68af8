//! A program made ready for one message size: spans turned into offsets, pages and slots chosen.

use stepccl_plan::{DType, Place, Program, Span, Step, Targets, boundary};

use crate::geometry::{FINISHED_EVERY, Geometry, SMALL_SLOTS};

/// Bytes of memory relative to what a round moves on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// Offset in a block of the input, moves on by the round.
    Input { block: u32, offset: usize },
    /// Offset in a block of the output, moves on by the round.
    Output { block: u32, offset: usize },
    /// Offset in the slot of a rank's staging.
    Staging { rank: u32, offset: usize },
}

/// A step with its sizes. Acts of a shorter round stand at the same places as those of a full one,
/// because the order of signals is kept by place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// A move of no elements.
    Nothing,
    Copy {
        src: Spot,
        dst: Spot,
        bytes: usize,
    },
    Reduce {
        srcs: Box<[Spot]>,
        dst: Spot,
        count: usize,
        last: bool,
    },
    Signal {
        flag: u32,
        to: Targets,
    },
    Wait {
        from: u32,
        flag: u32,
    },
}

/// Where the slots of a round are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slots {
    /// Fixed places, one for each round number modulo their number.
    Small,
    /// The large share, cut into `depth` slots from the operation's first round on.
    Large,
}

/// Everything about a collective of one size that does not depend on the caller's pointers.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Acts of a full round, and of the last one where it is shorter.
    pub full: Box<[Act]>,
    pub tail: Option<Box<[Act]>>,
    pub page_bytes: usize,
    pub rounds: u64,
    pub depth: u32,
    pub slots: Slots,
    pub slot_bytes: usize,
    pub slot_offset: usize,
    /// "Finished" is told after rounds whose number + 1 is a multiple of this.
    pub finished_every: u64,
    /// Place of the algorithm in the list of all, counted from 1; for records only.
    pub algorithm: u8,
}

impl Prepared {
    /// Make `program` ready for `count` elements a block, `page` of them a round.
    pub fn new(
        program: &Program,
        geometry: &Geometry,
        dtype: DType,
        count: usize,
        page: usize,
        depth: u32,
    ) -> Self {
        let size = dtype.size();
        let page = page.clamp(1, count.max(1));
        let stride = (page * size).next_multiple_of(64);
        let slot_bytes = stride * program.areas as usize;
        // A barrier moves nothing and still has its round.
        let rounds =
            if count == 0 { u64::from(!moves(program)) } else { count.div_ceil(page) as u64 };
        let small = rounds <= 1 && slot_bytes <= geometry.small_slot_bytes;
        let acts = |len: usize| -> Box<[Act]> {
            program.steps.iter().map(|s| act(s, program.parts, len, dtype, stride)).collect()
        };
        let rest = count % page;
        Self {
            full: acts(page.min(count)),
            tail: (rest != 0).then(|| acts(rest)),
            page_bytes: page * size,
            rounds,
            depth: if small { 1 } else { depth },
            slots: if small { Slots::Small } else { Slots::Large },
            slot_bytes: if small { geometry.small_slot_bytes } else { slot_bytes },
            slot_offset: if small { 0 } else { geometry.large_offset },
            finished_every: if small { FINISHED_EVERY } else { 1 },
            algorithm: 0,
        }
    }

    /// Acts of round `index`.
    pub fn acts(&self, index: u64) -> &[Act] {
        match &self.tail {
            Some(tail) if index + 1 == self.rounds => tail,
            _ => &self.full,
        }
    }

    /// Offset in every rank's staging of the slot of round `index` with global number `number`.
    pub fn slot(&self, index: u64, number: u64) -> u64 {
        let slot = match self.slots {
            Slots::Small => number % SMALL_SLOTS,
            Slots::Large => index % u64::from(self.depth),
        };
        self.slot_offset as u64 + slot * self.slot_bytes as u64
    }
}

fn moves(program: &Program) -> bool {
    program.steps.iter().any(|s| matches!(s, Step::Copy { .. } | Step::Reduce { .. }))
}

fn act(step: &Step, parts: u32, len: usize, dtype: DType, stride: usize) -> Act {
    let size = dtype.size();
    let range = |span: &Span| {
        let start = boundary(span.first, parts, len, dtype);
        (start, boundary(span.first + span.count, parts, len, dtype) - start)
    };
    let place = |span: &Span| {
        let offset = range(span).0 * size;
        match span.place {
            Place::Input => Spot::Input { block: span.block, offset },
            Place::Output => Spot::Output { block: span.block, offset },
            Place::Staging => {
                Spot::Staging { rank: span.rank, offset: span.block as usize * stride + offset }
            }
        }
    };
    match step {
        Step::Copy { src, dst } => {
            let bytes = range(dst).1 * size;
            if bytes == 0 {
                return Act::Nothing;
            }
            Act::Copy { src: place(src), dst: place(dst), bytes }
        }
        Step::Reduce { srcs, dst, last } => {
            let count = range(dst).1;
            if count == 0 {
                return Act::Nothing;
            }
            Act::Reduce {
                srcs: srcs.iter().map(place).collect(),
                dst: place(dst),
                count,
                last: *last,
            }
        }
        Step::Signal { flag, to } => Act::Signal { flag: *flag, to: *to },
        Step::Wait { from, flag } => Act::Wait { from: *from, flag: *flag },
    }
}
