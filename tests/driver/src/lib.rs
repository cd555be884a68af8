//! Tests of the kernel driver.
//!
//! [`conformance`] is what every service of a ring must do: the driver in a guest, and a thread of
//! the process in `tests/in_process.rs`. The other modules are about the driver alone; the program
//! of this crate runs all of them in a guest.
#![deny(unsafe_code)]

pub mod cases;
pub mod conformance;
pub mod noise;
