//! The state of one channel: what its registers say, and which descriptor is next.

/// What a channel does, as the low bits of its status say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Descriptors are left.
    Active = 0,
    /// All are done.
    Idle = 1,
    /// It was told to stop.
    Suspended = 2,
    /// It stopped by itself, or was never started.
    Halted = 3,
}

/// Reading the source failed.
pub const READ_ERROR: u32 = 0x100;
/// Writing the destination failed.
pub const WRITE_ERROR: u32 = 0x200;
/// The next descriptor cannot be read.
pub const NEXT_ERROR: u32 = 0x4;

/// One channel.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Channel control, only kept.
    pub control: u16,
    /// Where the status is written to after a descriptor that asks for it.
    pub completion: u64,
    /// First descriptor.
    pub chain: u64,
    /// Why it halted.
    pub error: u32,
    /// Which errors are masked, only kept.
    pub error_mask: u32,
    /// Direct cache access, only kept.
    pub dca: u32,
    /// How many descriptors the driver has issued since the start of the chain, modulo 2^16.
    issued: u16,
    done: u16,
    state: State,
    /// Address of the last descriptor that was done.
    last: u64,
    next: u64,
    /// A descriptor is being executed.
    executing: bool,
    /// Suspend when it is done.
    suspend: bool,
    /// Counts resets: what was begun before one is forgotten.
    resets: u32,
}

impl Default for Channel {
    fn default() -> Self {
        Self {
            control: 0,
            completion: 0,
            chain: 0,
            error: 0,
            error_mask: 0,
            dca: 0,
            issued: 0,
            done: 0,
            state: State::Halted,
            last: 0,
            next: 0,
            executing: false,
            suspend: false,
            resets: 0,
        }
    }
}

impl Channel {
    /// The status register.
    #[must_use]
    pub const fn status(&self) -> u64 {
        self.last & !0x3f | self.state as u64
    }

    /// How often it was reset.
    #[must_use]
    pub const fn resets(&self) -> u32 {
        self.resets
    }

    /// The number of descriptors issued.
    #[must_use]
    pub const fn issued(&self) -> u16 {
        self.issued
    }

    /// The chain begins anew at its address.
    pub const fn begin_chain(&mut self) {
        self.next = self.chain;
        self.issued = 0;
        self.done = 0;
        self.suspend = false;
        self.state = State::Idle;
    }

    /// So many descriptors are issued.
    pub const fn issue(&mut self, count: u16) {
        self.issued = count;
        if self.done != count && matches!(self.state, State::Idle) {
            self.state = State::Active;
        }
    }

    /// Stop after the descriptor that is being executed.
    pub const fn suspend(&mut self) {
        if self.executing {
            self.suspend = true;
        } else if !matches!(self.state, State::Halted) {
            self.state = State::Suspended;
        }
    }

    /// Forget everything.
    pub fn reset(&mut self) {
        *self = Self {
            error_mask: self.error_mask,
            resets: self.resets.wrapping_add(1),
            ..Self::default()
        };
    }

    /// The descriptor to execute now, and the number of resets so far.
    pub const fn start(&mut self) -> Option<(u64, u32)> {
        if self.executing || !matches!(self.state, State::Active) {
            return None;
        }
        self.executing = true;
        Some((self.next, self.resets))
    }

    /// The descriptor at `at` is done and `next` follows; false where a reset came in between.
    pub const fn finish(&mut self, at: u64, next: u64, resets: u32) -> bool {
        if self.resets != resets {
            return false;
        }
        self.executing = false;
        self.last = at;
        self.next = next;
        self.done = self.done.wrapping_add(1);
        self.state = match (self.suspend, self.done == self.issued) {
            (true, _) => State::Suspended,
            (false, true) => State::Idle,
            (false, false) => State::Active,
        };
        self.suspend = false;
        true
    }

    /// The descriptor could not be executed; false where a reset came in between.
    pub const fn halt(&mut self, error: u32, resets: u32) -> bool {
        if self.resets != resets {
            return false;
        }
        self.executing = false;
        self.suspend = false;
        self.error |= error;
        self.state = State::Halted;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started() -> Channel {
        let mut channel = Channel { chain: 0x1000, ..Channel::default() };
        channel.begin_chain();
        channel.issue(2);
        channel
    }

    #[test]
    fn descriptors_follow_one_another() {
        let mut channel = started();
        assert_eq!(channel.status() & 7, State::Active as u64);
        assert_eq!(channel.start(), Some((0x1000, 0)));
        assert_eq!(channel.start(), None, "one at a time");
        assert!(channel.finish(0x1000, 0x2040, 0));
        assert_eq!(channel.status(), 0x1000 | State::Active as u64);
        assert_eq!(channel.start(), Some((0x2040, 0)));
        assert!(channel.finish(0x2040, 0x3000, 0));
        assert_eq!(channel.status(), 0x2040 | State::Idle as u64);
        assert_eq!(channel.start(), None);
        channel.issue(3);
        assert_eq!(channel.start(), Some((0x3000, 0)));
    }

    #[test]
    fn a_suspended_channel_ends_what_it_does() {
        let mut channel = started();
        let (at, resets) = channel.start().unwrap();
        channel.suspend();
        assert_eq!(channel.status() & 7, State::Active as u64);
        assert!(channel.finish(at, 0x40, resets));
        assert_eq!(channel.status() & 7, State::Suspended as u64);
        assert_eq!(channel.start(), None);
        channel.begin_chain();
        channel.issue(1);
        assert!(channel.start().is_some());
    }

    #[test]
    fn nothing_survives_a_reset() {
        let mut channel = started();
        let (at, resets) = channel.start().unwrap();
        channel.reset();
        assert!(!channel.finish(at, 0x40, resets));
        assert!(!channel.halt(READ_ERROR, resets));
        assert_eq!((channel.status(), channel.error), (State::Halted as u64, 0));
        channel.issue(1);
        assert_eq!(channel.start(), None, "a chain must begin first");
    }

    #[test]
    fn an_error_halts() {
        let mut channel = started();
        let (_, resets) = channel.start().unwrap();
        assert!(channel.halt(WRITE_ERROR, resets));
        assert_eq!((channel.status() & 7, channel.error), (State::Halted as u64, WRITE_ERROR));
        assert_eq!(channel.start(), None);
    }
}
