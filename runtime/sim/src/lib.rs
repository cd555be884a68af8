//! All ranks of a communicator in one process, on a virtual clock.
//!
//! Runs real programs on real numbers under the rules of the executor: rounds in flight up to a
//! depth, steps of a round in order, never a step of a round before the same step of the round
//! before, a staging slot used again only when all ranks have finished its round. Time passes as
//! the figures of the cost model say, or ranks run in random order. Faults are scripted. Nothing
//! here sleeps: a run that cannot go on ends and says who waits for whom.
#![forbid(unsafe_code)]

mod element;
mod memory;
mod outcome;
mod scenario;
mod world;

pub use element::Element;
pub use outcome::{Blocked, Outcome, Reason};
pub use scenario::{Delay, Faults, Loss, Order, Scenario};
pub use world::run;
