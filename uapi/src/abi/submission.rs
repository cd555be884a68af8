//! What the caller puts on the submission queue, and the static rules for it.

use super::address::overlap;
use super::descriptor::{self, Descriptor, opcode};
use super::status::EntryRule;

/// Bits of [`SubmissionEntry::flags`].
pub mod flags {
    /// The next entry starts only after this one has succeeded.
    pub const LINK: u32 = 1 << 0;
    /// Start only when every earlier entry is complete.
    pub const DRAIN: u32 = 1 << 1;
    /// On success store the signal value.
    pub const SIGNAL_STORE: u32 = 1 << 2;
    /// On success add the signal value.
    pub const SIGNAL_ADD: u32 = 1 << 3;
    /// The two signal bits.
    pub const SIGNAL: u32 = SIGNAL_STORE | SIGNAL_ADD;
    /// All bits that are known.
    pub const ALL: u32 = LINK | DRAIN | SIGNAL;
}

/// `struct dma_engine_sqe`: submission entry.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmissionEntry {
    /// What to do.
    pub desc: Descriptor,
    /// Comes back in the completion.
    pub user_data: u64,
    /// Address of the u64 to signal; 0 without a signal flag.
    pub signal_addr: u64,
    /// Operand of the signal; 0 without a signal flag.
    pub signal_value: u64,
    /// Bits of [`flags`].
    pub flags: u32,
    /// Must be 0.
    pub reserved: u32,
}

const _: () = assert!(core::mem::size_of::<SubmissionEntry>() == 64);

impl SubmissionEntry {
    /// Words of 8 bytes of an entry.
    pub const WORDS: usize = 8;

    /// The entry as it lies in memory, in words of 8 bytes.
    #[must_use]
    pub const fn to_words(self) -> [u64; Self::WORDS] {
        let desc = self.desc.to_words();
        let flags = self.flags.to_ne_bytes();
        let rest = self.reserved.to_ne_bytes();
        [
            desc[0],
            desc[1],
            desc[2],
            desc[3],
            self.user_data,
            self.signal_addr,
            self.signal_value,
            u64::from_ne_bytes([
                flags[0], flags[1], flags[2], flags[3], rest[0], rest[1], rest[2], rest[3],
            ]),
        ]
    }

    /// The entry that lies in memory as `words`. Every pattern of bits is one; nothing is checked.
    #[must_use]
    pub const fn from_words(words: [u64; Self::WORDS]) -> Self {
        let last = words[7].to_ne_bytes();
        Self {
            desc: Descriptor::from_words([words[0], words[1], words[2], words[3]]),
            user_data: words[4],
            signal_addr: words[5],
            signal_value: words[6],
            flags: u32::from_ne_bytes([last[0], last[1], last[2], last[3]]),
            reserved: u32::from_ne_bytes([last[4], last[5], last[6], last[7]]),
        }
    }

    /// Check every rule that needs no table of regions: of a copy that nobody else can change.
    ///
    /// `node` is the number of this node.
    ///
    /// # Errors
    ///
    /// The first rule that is broken; [`EntryRule::errno`] is its place in the completion.
    pub const fn check(&self, node: u16) -> Result<(), EntryRule> {
        match self.check_signal() {
            Ok(()) => self.check_descriptor(node),
            Err(rule) => Err(rule),
        }
    }

    const fn check_signal(&self) -> Result<(), EntryRule> {
        if self.reserved != 0 {
            return Err(EntryRule::ReservedNotZero);
        }
        if self.flags & !flags::ALL != 0 {
            return Err(EntryRule::UnknownFlag);
        }
        match self.flags & flags::SIGNAL {
            0 if self.signal_addr != 0 || self.signal_value != 0 => Err(EntryRule::UnusedNotZero),
            flags::SIGNAL => Err(EntryRule::FlagsExclude),
            _ if self.signal_addr & 7 != 0 => Err(EntryRule::SignalMisaligned),
            _ => Ok(()),
        }
    }

    const fn check_descriptor(&self, node: u16) -> Result<(), EntryRule> {
        let desc = &self.desc;
        let words = desc.to_words();
        let r = desc.reserved;
        if u64::from_ne_bytes([0, 0, r[0], r[1], r[2], r[3], r[4], r[5]]) != 0 {
            return Err(EntryRule::ReservedNotZero);
        }
        if desc.flags & !descriptor::flags::ALL != 0 {
            return Err(EntryRule::UnknownFlag);
        }
        if desc.flags == descriptor::flags::ALL {
            return Err(EntryRule::FlagsExclude);
        }
        match desc.opcode {
            opcode::READ | opcode::WRITE | opcode::FILL if desc.length == 0 => {
                Err(EntryRule::NoLength)
            }
            opcode::READ if desc.dst_node != node => Err(EntryRule::WrongNode),
            opcode::WRITE if desc.src_node != node => Err(EntryRule::WrongNode),
            opcode::FILL if desc.src_node != node || desc.dst_node != node => {
                Err(EntryRule::WrongNode)
            }
            opcode::READ | opcode::WRITE
                if desc.src_node == desc.dst_node
                    && overlap(desc.src_addr, desc.dst_addr, desc.length as u64) =>
            {
                Err(EntryRule::Overlap)
            }
            opcode::READ | opcode::WRITE | opcode::FILL => Ok(()),
            opcode::NOP | opcode::FENCE
                if words[0] | words[1] | words[2] != 0 || desc.flags != 0 =>
            {
                Err(EntryRule::UnusedNotZero)
            }
            opcode::NOP | opcode::FENCE => Ok(()),
            0 => Err(EntryRule::NoOpcode),
            _ => Err(EntryRule::UnknownOpcode),
        }
    }
}
