//! Whether this process was forked from the one that made a communicator.
//!
//! A child of `fork` has the memory, the descriptors and the rank of its parent, so whatever it did
//! with them would be done twice. It has none of its parent's threads either.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::libc;

/// Forks between the first communicator and this process.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// A process, as a communicator remembers the one that made it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Maker {
    forks: u32,
    pub pid: u32,
}

impl Maker {
    /// This process.
    pub fn this() -> Self {
        static WATCH: Once = Once::new();
        WATCH.call_once(|| {
            // SAFETY:
            // - The handler is a function for ever, and only adds to an atomic, which is allowed
            //   in a child of a process with threads.
            // Where the system has no memory for it, a fork is not noticed.
            let _ = unsafe { libc::pthread_atfork(None, None, Some(count)) };
        });
        Self { forks: FORKS.load(Ordering::Relaxed), pid: std::process::id() }
    }

    /// Whether this process is that one.
    #[inline]
    pub fn is_this(self) -> bool {
        self.forks == FORKS.load(Ordering::Relaxed)
    }
}

/// Runs in each child.
extern "C" fn count() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}
