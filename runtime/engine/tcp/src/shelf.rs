//! The boards of a peer as this rank sees them: places that the reactor fills and this rank reads.

use std::sync::atomic::{AtomicU64, Ordering};

use stepccl_engine::{BoardShape, Look};

use crate::area::Area;

/// One board of one peer.
#[derive(Debug)]
pub(crate) struct Shelf {
    shape: BoardShape,
    /// Number plus 1 and the two words of each place.
    heads: Box<[[AtomicU64; 3]]>,
    /// Data of all places. Words that may be written while they are borrowed, touched by raw
    /// pointer only.
    data: Box<[AtomicU64]>,
}

impl Shelf {
    /// A board of that shape; without places where there is none.
    pub(crate) fn new(shape: Option<BoardShape>) -> Self {
        let shape = shape.unwrap_or(BoardShape { posts: 0, bytes: 0 });
        let posts = shape.posts as usize;
        let zeros = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        Self {
            shape,
            heads: (0..posts).map(|_| [const { AtomicU64::new(0) }; 3]).collect(),
            data: zeros(posts * shape.bytes.div_ceil(8)),
        }
    }

    /// Most bytes of data.
    pub(crate) const fn limit(&self) -> usize {
        self.shape.bytes
    }

    /// What is there of post `number`; none where there is no such board.
    #[inline]
    pub(crate) fn look(&self, number: u64) -> Option<Look> {
        let head = self.head(number)?;
        let found = head[0].load(Ordering::Acquire);
        Some(match found.cmp(&number.wrapping_add(1)) {
            std::cmp::Ordering::Less => Look::Absent,
            std::cmp::Ordering::Equal => {
                Look::Here([head[1].load(Ordering::Relaxed), head[2].load(Ordering::Relaxed)])
            }
            std::cmp::Ordering::Greater => Look::Past,
        })
    }

    /// Where `bytes` bytes at `offset` of the data of post `number` are.
    pub(crate) fn part(&self, number: u64, offset: usize, bytes: usize) -> Option<Area> {
        let words = self.shape.bytes.div_ceil(8);
        let first = self.place(number)? * words;
        let base = self.data.get(first..first + words)?.as_ptr();
        // SAFETY:
        // - The words live as long as the shelf, which lives as long as the engine and its thread,
        //   and may be written through a shared reference; nobody reads or writes them otherwise.
        let whole = unsafe { Area::new(base.cast_mut().cast(), self.shape.bytes as u64) };
        whole.part(offset as u64, bytes as u64)
    }

    /// Whether post `number` may come now: numbers only grow.
    pub(crate) fn expects(&self, number: u64) -> bool {
        let later = |head: &[AtomicU64; 3]| head[0].load(Ordering::Relaxed) > number;
        number < u64::MAX && self.head(number).is_some_and(|head| !later(head))
    }

    /// The data of post `number` is in place: say so.
    pub(crate) fn put_up(&self, number: u64, words: [u64; 2]) {
        if let Some(head) = self.head(number) {
            head[1].store(words[0], Ordering::Relaxed);
            head[2].store(words[1], Ordering::Relaxed);
            // Whoever sees the number sees the words and the data.
            head[0].store(number + 1, Ordering::Release);
        }
    }

    fn head(&self, number: u64) -> Option<&[AtomicU64; 3]> {
        self.heads.get(self.place(number)?)
    }

    #[inline]
    fn place(&self, number: u64) -> Option<usize> {
        // Posts are a power of two: the host engine has checked the same shape.
        let mask = u64::from(self.shape.posts).checked_sub(1)?;
        Some((number & mask) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_are_absent_then_here_then_past() {
        let shelf = Shelf::new(Some(BoardShape { posts: 4, bytes: 13 }));
        assert_eq!(shelf.look(5), Some(Look::Absent));
        assert!(shelf.expects(5));
        shelf.part(5, 2, 3).unwrap().write(b"abc");
        shelf.put_up(5, [1, 2]);
        assert_eq!(shelf.look(5), Some(Look::Here([1, 2])));
        assert_eq!(shelf.look(1), Some(Look::Past));
        assert_eq!(shelf.look(9), Some(Look::Absent));
        assert!(!shelf.expects(5) && !shelf.expects(1) && shelf.expects(9));
        assert!(!shelf.expects(u64::MAX));
        assert_eq!(shelf.part(5, 11, 3), None);
        // The places do not overlap.
        shelf.part(6, 0, 13).unwrap().write(&[7; 13]);
        let mut found = [0; 3];
        shelf.part(5, 2, 3).unwrap().read(&mut found);
        assert_eq!(&found, b"abc");
    }

    #[test]
    fn without_a_board_there_are_no_posts() {
        let shelf = Shelf::new(None);
        assert_eq!((shelf.look(0), shelf.part(0, 0, 0)), (None, None));
        assert!(!shelf.expects(0));
        shelf.put_up(0, [0; 2]);
    }
}
