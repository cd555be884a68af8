//! What a run times: a collective, or messages between ranks.

use std::fmt;

use stepccl::Collective;

use crate::listed::Listed;
use crate::names;

/// A collective, or a pattern of sends and receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Collective(Collective),
    /// Every rank sends to the next and receives from the one before, both at once.
    SendRecv,
    /// Rank 0 sends to rank 1, which sends it back; the time is that of one way.
    PingPong,
    /// All-reduces in one group, held against a single one of their total size.
    Group {
        /// All-reduces of the group, each of a block.
        members: u32,
    },
}

/// All-reduces of a group, unless an argument says otherwise.
pub(crate) const MEMBERS: u32 = 1000;

impl Operation {
    /// Messages need this many ranks.
    pub const MESSAGE_RANKS: u32 = 2;

    /// The operation of this name; underscores may be left out, as nccl-tests does.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
            "sendrecv" => Ok(Self::SendRecv),
            "pingpong" => Ok(Self::PingPong),
            "group" => Ok(Self::Group { members: MEMBERS }),
            _ => names::collective(name)
                .map(Self::Collective)
                .map_err(|rule| rule + ", sendrecv, ping_pong, group"),
        }
    }

    /// Reads an operation.
    pub fn listed() -> Listed<Self> {
        let names = Collective::ALL.map(Collective::name).into_iter();
        Listed::new(Self::parse, names.chain(["sendrecv", "ping_pong", "group"]))
    }

    pub fn with_root(self, root: u32) -> Self {
        match self {
            Self::Collective(collective) => Self::Collective(collective.with_root(root)),
            other => other,
        }
    }

    /// The same with so many all-reduces, where it is a group.
    pub fn with_members(self, members: u32) -> Self {
        if matches!(self, Self::Group { .. }) { Self::Group { members } } else { self }
    }

    /// What its two forms are called: in the table, and in JSON.
    pub const fn forms(self) -> [(&'static str, &'static str); 2] {
        match self {
            Self::Group { .. } => [("in a group", "group"), ("as one", "one")],
            _ => [("out-of-place", "out_of_place"), ("in-place", "in_place")],
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Collective(collective) => collective.name(),
            Self::SendRecv => "sendrecv",
            Self::PingPong => "ping_pong",
            Self::Group { .. } => "group",
        }
    }

    pub fn root(self) -> Option<u32> {
        match self {
            Self::Collective(collective) => collective.root(),
            _ => None,
        }
    }

    pub fn reduces(self) -> bool {
        match self {
            Self::Collective(collective) => collective.reduces(),
            Self::Group { .. } => true,
            Self::SendRecv | Self::PingPong => false,
        }
    }

    pub fn is_barrier(self) -> bool {
        self == Self::Collective(Collective::Barrier)
    }

    /// Blocks that `rank` gives.
    pub fn input_blocks(self, rank: u32, ranks: u32) -> u32 {
        match self {
            Self::Collective(collective) => collective.input_blocks(rank, ranks),
            Self::SendRecv => 1,
            Self::PingPong => u32::from(rank < Self::MESSAGE_RANKS),
            Self::Group { members } => members,
        }
    }

    /// Blocks that `rank` gets.
    pub fn output_blocks(self, rank: u32, ranks: u32) -> u32 {
        match self {
            Self::Collective(collective) => collective.output_blocks(rank, ranks),
            other => other.input_blocks(rank, ranks),
        }
    }

    /// Messages one after the other in one call; its time is shown for one of them.
    pub fn messages(self) -> f64 {
        if self == Self::PingPong { 2.0 } else { 1.0 }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_collectives_and_of_messages() {
        assert_eq!(Operation::parse("send-recv"), Ok(Operation::SendRecv));
        assert_eq!(Operation::parse("PING_PONG"), Ok(Operation::PingPong));
        assert_eq!(Operation::parse("alltoall"), Ok(Operation::Collective(Collective::AllToAll)));
        assert!(Operation::parse("ping").unwrap_err().ends_with("ping_pong, group"));
        assert_eq!(Operation::parse("group"), Ok(Operation::Group { members: MEMBERS }));
    }

    #[test]
    fn ranks_behind_a_ping_pong_have_no_memory() {
        assert_eq!([0, 1, 2].map(|rank| Operation::PingPong.output_blocks(rank, 3)), [1, 1, 0]);
    }
}
