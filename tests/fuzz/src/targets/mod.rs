//! Targets over what crates show to everybody, and the reader of choices that they share.

pub(crate) mod board;
pub(crate) mod flight;
mod input;
pub(crate) mod plan;
pub(crate) mod ring;
pub(crate) mod text;
pub(crate) mod verify;
