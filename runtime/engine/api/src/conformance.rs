//! What every engine must do, as tests that any engine can be put through.
//!
//! A new engine is tested by one function that makes the connected engines of n ranks:
//!
//! ```ignore
//! #[test]
//! fn conforms() {
//!     stepccl_engine::conformance::all(3, &|ranks| connect(ranks));
//! }
//! ```
//!
//! Every check panics with what it found, has a deadline for each wait, and asks the engine's
//! capabilities first, so that an engine without reduction is not asked to reduce. A check takes
//! fresh engines, so that one does not depend on another.

mod boards;
mod buffer;
mod copies;
mod drive;
mod flags;
mod life;
mod parking;
mod progress;
mod pulls;
mod reductions;
mod reference;
mod refusals;

use crate::Engine;

pub use boards::boards;
pub use copies::copies;
pub use flags::{flags, staging_follows_flags};
pub use life::{announcements, closing, explanations};
pub use parking::{parks_end, wakes_are_not_lost};
pub use progress::{counters, many_at_once, regions_in_use};
pub use pulls::{pulls, pushes};
pub use reductions::reductions;
pub use refusals::refusals;

/// Makes the connected engines of that many ranks, by rank. Each needs at least 8 flags and
/// 256 KiB of staging, all peers reachable.
pub type Factory<'a> = &'a dyn Fn(u32) -> Vec<Box<dyn Engine>>;

/// Every check, with engines of `ranks` ranks.
///
/// # Panics
///
/// Where an engine does not conform; the message says what was expected and found.
pub fn all(ranks: u32, factory: Factory<'_>) {
    copies(factory(ranks));
    reductions(factory(ranks));
    refusals(factory(ranks));
    flags(factory(ranks));
    staging_follows_flags(factory(ranks));
    boards(factory(ranks));
    pulls(factory(ranks));
    pushes(factory(ranks));
    parks_end(factory(ranks));
    wakes_are_not_lost(factory(ranks));
    many_at_once(factory(ranks));
    regions_in_use(factory(ranks));
    counters(factory(ranks));
    announcements(factory(ranks));
    explanations(factory(ranks));
    closing(factory(ranks));
}
