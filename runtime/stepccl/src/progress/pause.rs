//! When operations that have a thread to themselves are to be interrupted.

use std::time::{Duration, Instant};

/// A limit whose clock is read only when it is asked for.
#[derive(Debug)]
pub(super) struct Pause {
    limit: Option<Duration>,
    end: Option<Instant>,
    moves: u8,
}

impl Pause {
    /// A limit that begins with the first question; or none.
    pub const fn new(limit: Option<Duration>) -> Self {
        Self { limit, end: None, moves: 0 }
    }

    /// Whether it is over.
    pub fn is_over(&mut self) -> bool {
        self.limit.is_some_and(|limit| {
            let now = Instant::now();
            now >= *self.end.get_or_insert(now + limit)
        })
    }

    /// Whether it is over, asked after each move: cheap.
    pub fn is_over_at_move(&mut self) -> bool {
        self.moves = self.moves.wrapping_add(1);
        self.moves == 0 && self.is_over()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_with_the_first_question() {
        let mut none = Pause::new(None);
        assert!(!none.is_over() && (0..1000).all(|_| !none.is_over_at_move()));
        let mut short = Pause::new(Some(Duration::from_millis(1)));
        std::thread::sleep(Duration::from_millis(2));
        assert!(!short.is_over());
        std::thread::sleep(Duration::from_millis(2));
        assert!(short.is_over());
        assert!((0..256).any(|_| short.is_over_at_move()));
    }
}
