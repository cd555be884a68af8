//! The C interface.
//!
//! `include/stepccl.h` is generated from this crate: the comments of the public functions are the
//! ones that C programs read. A test compares both; `scripts/build-c --header` writes the header
//! anew.
//!
//! Handles are boxes that C holds as pointers. Every function goes through `guard::guard`: an error
//! becomes a code with a text of the calling thread, and so does a panic.

mod code;
mod comm;
mod dtype;
mod group;
mod guard;
mod op;
mod request;
mod settings;
mod started;
mod store;
mod text;
mod waiting;
mod work;

pub use code::*;
pub use comm::*;
pub use dtype::*;
pub use group::*;
pub use op::*;
pub use started::*;
pub use text::*;
pub use waiting::*;
pub use work::*;
