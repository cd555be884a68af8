//! Which size is measured, for somebody who waits at a terminal.

use std::io::{self, IsTerminal, Write};

/// Sizes are counted no further than this.
const MOST: usize = 100_000;

/// A line on standard error that changes; nothing where that is no terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    shown: bool,
    total: usize,
    at: usize,
}

impl Progress {
    /// Progress over as many sizes as `sizes` has.
    pub fn new(sizes: impl Iterator, rank: u32) -> Self {
        let shown = rank == 0 && io::stderr().is_terminal();
        let total = if shown { sizes.take(MOST).count() } else { 0 };
        Self { shown, total, at: 0 }
    }

    /// The next size begins.
    pub fn begin(&mut self, what: impl FnOnce() -> String) {
        self.at += 1;
        if self.shown {
            let of = if self.total < MOST { self.total.to_string() } else { "many".to_owned() };
            // Where standard error is closed there is nobody to tell.
            let _ = write!(io::stderr(), "\r\x1b[K{} ({} of {of})", what(), self.at);
        }
    }

    /// Make way for other output.
    pub fn clear(&self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
