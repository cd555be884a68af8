//! Whole worlds in one thread: every rank of a communicator over an engine that is made up.
//!
//! The engine delays signals, completes out of order, answers "full", and fails where it is told
//! to. It knows which bytes of staging each rank has still to read, so a slot that is written too
//! early is an error even where the numbers come out right.

mod boards;
mod faults;
mod integer;
#[cfg(loom)]
mod loom;
mod manners;
mod mixes;
mod mock;
mod operations;
mod random;
mod schedule;
mod shadow;
mod world;
