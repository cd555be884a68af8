//! A long collective that moves each byte once: ranks tell one another where their memory lies, and
//! read it, or write it, there.
//!
//! Two stages: the first post says what is called and where the buffer is that others touch, the
//! second that this rank has moved what it had to. Whose memory is touched waits for the second post
//! of those who touch it, and leaves it alone until then.

use std::collections::VecDeque;
use std::time::Duration;

use stepccl_engine::{EngineError, Part, PartMut};
use stepccl_plan::Collective;

use crate::announcement::Announcement;
use crate::called::Called;
use crate::context::{Advance, Context, Failure};
use crate::geometry::STREAMING_BYTES;
use crate::moves::{Moves, Piece, Side, Told};
use crate::{Call, Memory};

/// Most bytes that are read before other operations get their turn.
pub(crate) const TURN_BYTES: usize = 4 << 20;
/// Most bytes that are written so: a rank that gives up waits for the end of a turn.
const WRITE_TURN_BYTES: usize = 1 << 20;
/// Stage in which buffers are told.
const BUFFERS: u64 = 0;
/// Stage in which a rank tells that it has moved all.
const MOVED: u64 = 1;

/// A long collective of single copies under way on one rank.
#[derive(Debug)]
pub(crate) struct PullTask {
    call: Call,
    announcement: Announcement,
    stage: Stage,
    rung: bool,
    streaming: bool,
    /// Peers may write the output.
    written: bool,
    /// Pieces that are not there yet, the one being moved first.
    pieces: VecDeque<Moving>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Announce,
    /// The root is to say whether it moves a part of each block.
    Root,
    Move,
    Tell,
    /// Those before this rank that touch this one's memory have finished.
    Peers(u32),
}

/// A piece, how far it is, and where it lies in the peer's process, once that is known.
#[derive(Clone, Copy, Debug)]
struct Moving {
    piece: Piece,
    there: Option<u64>,
}

impl Moving {
    const fn new(piece: Piece) -> Self {
        Self { piece, there: None }
    }
}

/// Whether a collective can be run so: nothing is combined, and something is moved.
pub(crate) const fn can_pull(collective: Collective) -> bool {
    !collective.reduces() && !matches!(collective, Collective::Barrier)
}

impl PullTask {
    /// What was called.
    pub const fn called(&self) -> Called {
        self.announcement.called
    }

    /// # Safety
    ///
    /// The memory of `call` must be valid, and untouched by others, until the task is done or, where
    /// it ends early, `release` has returned well behind the engine's announcement that this rank
    /// failed.
    pub unsafe fn new(call: Call) -> Self {
        Self {
            announcement: Announcement::new(Called::of(&call)),
            call,
            stage: Stage::Announce,
            rung: false,
            streaming: false,
            written: false,
            pieces: VecDeque::new(),
        }
    }

    fn moves(&self, cx: &Context) -> Moves {
        Moves::new(self.call.collective, cx.ranks, self.call.block_bytes(), cx.push_from)
    }

    pub fn advance(&mut self, cx: &mut Context) -> Result<Advance, Failure> {
        loop {
            match self.stage {
                Stage::Announce => {
                    if !self.announce(cx)? {
                        return Ok(Advance::Idle);
                    }
                    self.stage = Stage::Root;
                }
                Stage::Root => {
                    let Some(root_moves) = self.root_moves(cx)? else { return Ok(Advance::Idle) };
                    let pieces = self.moves(cx).of(cx.rank, root_moves);
                    self.pieces = pieces.into_iter().map(Moving::new).collect();
                    self.stage = Stage::Move;
                }
                Stage::Move => match self.move_some(cx)? {
                    Advance::Done => self.stage = Stage::Tell,
                    other => return Ok(other),
                },
                Stage::Tell => {
                    if !self.announcement.post((&Memory::None, 0, 0), 0, cx)? {
                        return Ok(Advance::Idle);
                    }
                    Announcement::ring(cx)?;
                    self.stage = Stage::Peers(0);
                }
                Stage::Peers(rank) if rank < cx.ranks => {
                    if self.moves(cx).touches(rank, cx.rank)
                        && !self.announcement.is_there(rank, MOVED, cx)?
                    {
                        self.announcement.wait(rank, MOVED, cx);
                        return Ok(Advance::Idle);
                    }
                    self.stage = Stage::Peers(rank + 1);
                }
                Stage::Peers(_) => {
                    self.written = false;
                    return Ok(Advance::Done);
                }
            }
        }
    }

    /// Say what is called and where the memory is that others touch. Whether there was room.
    fn announce(&mut self, cx: &mut Context) -> Result<bool, Failure> {
        let (moves, rank) = (self.moves(cx), cx.rank);
        let (told, blocks) = (moves.told(rank), moves.told_blocks(rank));
        let memory = match told {
            Told::Input => &self.call.input,
            Told::Output => &self.call.output,
        };
        let note = u32::from(moves.root == Some(rank) && self.is_in_place(&moves, rank));
        if !self.announcement.post((memory, blocks, moves.bytes), note, cx)? {
            return Ok(false);
        }
        let outputs = self.call.collective.output_blocks(rank, cx.ranks);
        self.streaming = moves.bytes.saturating_mul(outputs as usize) >= STREAMING_BYTES;
        self.written = told == Told::Output;
        Ok(true)
    }

    /// Whether this rank, the root, has no block of its own to copy.
    fn is_in_place(&self, moves: &Moves, rank: u32) -> bool {
        let Call { collective, input, output, .. } = &self.call;
        let own = input.block(collective.block_for(rank), moves.bytes);
        own == output.block(moves.own_output(rank), moves.bytes)
    }

    /// Whether the root moves a part of each block, once it has said so; false where there is none.
    fn root_moves(&mut self, cx: &mut Context) -> Result<Option<bool>, Failure> {
        let moves = self.moves(cx);
        let Some(root) = moves.root else { return Ok(Some(false)) };
        if root == cx.rank {
            return Ok(Some(self.is_in_place(&moves, root)));
        }
        if self.announcement.is_there(root, BUFFERS, cx)? {
            return Ok(Some(self.announcement.note(root, BUFFERS, cx)? != 0));
        }
        self.ring(cx)?;
        self.announcement.wait(root, BUFFERS, cx);
        Ok(None)
    }

    /// Wake who sleeps and waits for the first post.
    fn ring(&mut self, cx: &mut Context) -> Result<(), EngineError> {
        if self.rung {
            return Ok(());
        }
        self.rung = true;
        Announcement::ring(cx)
    }

    fn move_some(&mut self, cx: &mut Context) -> Result<Advance, Failure> {
        // What is there first is moved first.
        for _ in 0..self.pieces.len() {
            let Some(Moving { piece, there }) = self.pieces.front().copied() else { break };
            let there = match there {
                Some(there) => Some(there),
                None => self.find(&piece, cx)?,
            };
            let Some(there) = there else {
                self.pieces.rotate_left(1);
                continue;
            };
            let moved = self.move_turn(&piece, there, cx)?;
            if piece.from + moved == piece.to {
                self.pieces.pop_front();
            } else if let Some(front) = self.pieces.front_mut() {
                let piece = Piece { from: piece.from + moved, ..piece };
                *front = Moving { piece, there: Some(there) };
            }
            return Ok(if self.pieces.is_empty() { Advance::Done } else { Advance::Moved });
        }
        if self.pieces.is_empty() {
            return Ok(Advance::Done);
        }
        self.ring(cx)?;
        for Moving { piece, .. } in &self.pieces {
            self.announcement.wait(piece.peer, BUFFERS, cx);
        }
        Ok(Advance::Idle)
    }

    /// Move the first bytes of a piece whose block begins at `there`. Returns how many.
    fn move_turn(&self, piece: &Piece, there: u64, cx: &mut Context) -> Result<usize, Failure> {
        let (block_bytes, left) = (self.call.block_bytes(), piece.to - piece.from);
        let there = there.wrapping_add(piece.from as u64);
        let (memory, bytes) = match piece.side {
            Side::Read => (&self.call.output, left.min(TURN_BYTES)),
            Side::Write => (&self.call.input, left.min(WRITE_TURN_BYTES)),
        };
        // The call was checked to have all blocks.
        let Some(own) = memory.block(piece.own_block, block_bytes) else { return Ok(left) };
        let base = own.wrapping_add(piece.from);
        // SAFETY:
        // - `new` was promised that input and output are valid and used by nobody else but the
        //   peers, each for the pieces it moves; the call was checked to have them in the same place
        //   or apart.
        unsafe {
            match piece.side {
                Side::Read => {
                    cx.pull(piece.peer, there, PartMut { base, bytes }, self.streaming)?;
                }
                Side::Write => cx.push(piece.peer, there, Part { base, bytes })?,
            }
        }
        Ok(bytes)
    }

    /// Where the block of a piece lies in its rank's process; None where that rank has not said so
    /// yet.
    fn find(&self, piece: &Piece, cx: &mut Context) -> Result<Option<u64>, Failure> {
        let bytes = self.call.block_bytes();
        if piece.peer == cx.rank {
            let own = self.call.input.block(piece.peer_block, bytes);
            return Ok(own.map(|p| p.expose_provenance() as u64));
        }
        if !self.announcement.is_there(piece.peer, BUFFERS, cx)? {
            return Ok(None);
        }
        Ok(Some(self.announcement.locate(piece.peer, BUFFERS, piece.peer_block, bytes, cx)?))
    }

    /// Give the caller's memory back. Fails while a peer still writes it.
    pub fn release(&mut self, cx: &mut Context) -> Result<(), EngineError> {
        if self.written && !cx.engine.settle(Duration::ZERO) {
            return Err(EngineError::System {
                call: "process_vm_writev of a peer",
                message: "it has not ended".to_owned(),
            });
        }
        self.written = false;
        Ok(())
    }
}
