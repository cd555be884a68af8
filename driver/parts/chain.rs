// SPDX-License-Identifier: GPL-2.0

//! Linked entries: the next one starts only after this one has succeeded.

/// Where a queue stands in a chain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chain {
    linked: bool,
    failed: bool,
}

impl Chain {
    /// No chain is open.
    pub const fn new() -> Self {
        Self { linked: false, failed: false }
    }

    /// Whether the next entry must be cancelled, because one before it in its chain has failed.
    pub const fn cancels(&self) -> bool {
        self.linked && self.failed
    }

    /// An entry is over: whether the next one is linked to it, and whether it succeeded.
    pub fn end(&mut self, links: bool, succeeded: bool) {
        self.failed = self.cancels() || !succeeded;
        self.linked = links;
    }

    /// The batch is over, and with it every chain.
    pub fn cut(&mut self) {
        *self = Self::new();
    }
}
