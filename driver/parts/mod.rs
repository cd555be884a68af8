// SPDX-License-Identifier: GPL-2.0

//! What the driver decides, without the kernel: no allocation, no unsafe code, no lock.
//!
//! The module includes this folder, and so does `tests/driver-parts`, which tests it on the host.
//! Both compilers must take it: Rust 1.85, edition 2021, paths relative.

pub mod arguments;
pub mod chain;
pub mod completions;
pub mod errno;
pub mod few;
pub mod path;
pub mod pattern;
pub mod pieces;
pub mod range;
pub mod roster;
pub mod segments;
pub mod setup;
pub mod slots;
pub mod submissions;
