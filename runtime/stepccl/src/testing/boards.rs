//! Boards of messages in a made-up world: posts arrive late, and stand where others stood before.

use std::collections::HashMap;

use stepccl_engine::{Board, BoardShape, EngineError, Look};

use super::shadow::{Clock, Kind, Touch};
use super::world::World;

/// Few and short, so that places are used again soon and some messages do not fit.
const SHAPE: BoardShape = BoardShape { posts: 4, bytes: 40 };
/// Behind every staging, in the history of who touched what.
const HISTORY: u64 = 1 << 40;

#[derive(Clone, Debug)]
struct Post {
    number: u64,
    words: [u64; 2],
    data: Vec<u8>,
    clock: Clock,
}

/// Posts of all pairs.
#[derive(Debug, Default)]
pub(super) struct Boards {
    /// What each rank sees: by reader, writer, and place.
    seen: HashMap<(u32, u32, u64), Post>,
    /// Reader, writer, and a post that the reader does not see yet; in order.
    under_way: Vec<(u32, u32, Post)>,
}

fn touch(kind: Kind, owner: u32, reader: u32, number: u64) -> Vec<Touch> {
    let place = u64::from(reader) * u64::from(SHAPE.posts) + number % u64::from(SHAPE.posts);
    let start = HISTORY + place * 64;
    vec![Touch { kind, owner, bytes: start..start + 64 }]
}

impl Boards {
    pub fn is_busy(&self) -> bool {
        !self.under_way.is_empty()
    }

    pub fn len(&self) -> usize {
        self.under_way.len()
    }

    /// Let the first post arrive that is under way between the same ranks as the one at `at`.
    pub fn deliver(&mut self, at: usize) {
        let Some((reader, writer, _)) = self.under_way.get(at) else { return };
        let pair = (*reader, *writer);
        let first = self.under_way.iter().position(|(r, w, _)| (*r, *w) == pair).unwrap_or(at);
        let (reader, writer, post) = self.under_way.remove(first);
        let place = post.number % u64::from(SHAPE.posts);
        self.seen.insert((reader, writer, place), post);
    }
}

impl World {
    /// Size of a board, where these engines have it.
    pub fn board(&self, board: Board) -> Option<BoardShape> {
        (self.manners.boards && matches!(board, Board::Pair(_))).then_some(SHAPE)
    }

    pub fn post(
        &mut self,
        rank: u32,
        board: Board,
        number: u64,
        words: [u64; 2],
        data: Vec<u8>,
    ) -> Result<(), EngineError> {
        let (Board::Pair(reader), Some(_)) = (board, self.board(board)) else {
            return Err(EngineError::NoPost { board, number, bytes: data.len(), limit: 0 });
        };
        assert!(data.len() <= SHAPE.bytes, "rank {rank}: {} bytes in a post", data.len());
        assert_ne!(reader, rank, "a rank has nothing to tell itself");
        self.shadow.touch(rank, &touch(Kind::Write, rank, reader, number));
        let clock = self.shadow.tell(rank);
        self.boards.under_way.push((reader, rank, Post { number, words, data, clock }));
        Ok(())
    }

    fn seen(&mut self, rank: u32, from: u32, number: u64) -> Option<Post> {
        let place = number % u64::from(SHAPE.posts);
        let post = self.boards.seen.get(&(rank, from, place))?.clone();
        assert!(
            post.number <= number,
            "rank {rank}: post {} before {number} was read",
            post.number
        );
        if post.number < number {
            return None;
        }
        self.shadow.hear(rank, &post.clock);
        self.shadow.touch(rank, &touch(Kind::Read, from, rank, number));
        Some(post)
    }

    pub fn look(&mut self, rank: u32, from: u32, board: Board, number: u64) -> Look {
        assert_eq!(board, Board::Pair(rank), "a rank reads its own boards only");
        self.seen(rank, from, number).map_or(Look::Absent, |post| Look::Here(post.words))
    }

    /// Data of a post that was found to be there.
    pub fn fetched(&mut self, rank: u32, from: u32, number: u64) -> Vec<u8> {
        self.seen(rank, from, number).expect("a post that was looked at").data
    }
}
