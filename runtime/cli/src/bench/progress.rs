//! Which size is measured and for how long, for somebody who waits at a terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Sizes are counted no further than this.
const MOST: usize = 100_000;
/// A size that takes longer than this shows its time, as often.
const TICK: Duration = Duration::from_secs(1);

/// A line on standard error that changes; nothing where that is no terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    line: Option<Arc<Line>>,
    /// Rewrites the line of a size that takes long: this thread is busy then.
    ticker: Option<JoinHandle<()>>,
    total: usize,
    at: usize,
}

/// What is shown now; other threads write the line only while they hold it.
#[derive(Debug, Default)]
struct Line {
    shown: Mutex<Shown>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Shown {
    /// The size that is measured, since when; none between sizes.
    text: Option<(String, Instant)>,
    over: bool,
}

impl Progress {
    /// Progress over as many sizes as `sizes` has.
    pub fn new(sizes: impl Iterator, rank: u32) -> Self {
        if rank != 0 || !io::stderr().is_terminal() {
            return Self { line: None, ticker: None, total: 0, at: 0 };
        }
        let line = Arc::new(Line::default());
        let shared = Arc::clone(&line);
        // Without the thread, the size is shown and its time is not.
        let ticker = Builder::new().name("progress".to_owned()).spawn(move || shared.tick()).ok();
        Self { line: Some(line), ticker, total: sizes.take(MOST).count(), at: 0 }
    }

    /// The next size begins.
    pub fn begin(&mut self, what: impl FnOnce() -> String) {
        self.at += 1;
        let Some(line) = &self.line else { return };
        let of = if self.total < MOST { self.total.to_string() } else { "many".to_owned() };
        let text = format!("{} ({} of {of})", what(), self.at);
        line.change(|shown| {
            write(&text, None);
            shown.text = Some((text, Instant::now()));
        });
    }

    /// Make way for other output.
    pub fn clear(&self) {
        if let Some(line) = &self.line {
            line.change(|shown| {
                shown.text = None;
                write("", None);
            });
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            line.change(|shown| {
                if shown.text.take().is_some() {
                    write("", None);
                }
                shown.over = true;
            });
        }
        if let Some(ticker) = self.ticker.take() {
            // It has nothing to say.
            let _ = ticker.join();
        }
    }
}

impl Line {
    fn change(&self, change: impl FnOnce(&mut Shown)) {
        change(&mut self.shown.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }

    /// Show the time of each size that takes long, until all is over.
    fn tick(&self) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        while !shown.over {
            if let Some((text, since)) = &shown.text
                && since.elapsed() >= TICK
            {
                write(text, Some(since.elapsed()));
            }
            let waited = self.changed.wait_timeout(shown, TICK);
            shown = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn write(text: &str, time: Option<Duration>) {
    let time = time.map_or(String::new(), |time| format!(", {} s", time.as_secs()));
    // Where standard error is closed there is nobody to tell.
    let _ = write!(io::stderr(), "\r\x1b[K{text}{time}");
}
