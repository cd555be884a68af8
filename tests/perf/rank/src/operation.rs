//! What can be measured, by the names that all ranks of the benchmark share.

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Broadcast,
    Reduce,
    Gather,
    Scatter,
    /// Every rank to the next and from the one before, both at once.
    SendRecv,
    /// From rank 0 to rank 1 and back.
    PingPong,
    Barrier,
}

impl Operation {
    /// The operation of this name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "all_reduce" => Self::AllReduce,
            "all_gather" => Self::AllGather,
            "reduce_scatter" => Self::ReduceScatter,
            "all_to_all" => Self::AllToAll,
            "broadcast" => Self::Broadcast,
            "reduce" => Self::Reduce,
            "gather" => Self::Gather,
            "scatter" => Self::Scatter,
            "sendrecv" => Self::SendRecv,
            "ping_pong" => Self::PingPong,
            "barrier" => Self::Barrier,
            _ => return None,
        })
    }
}
