//! The kernel ABI of `/dev/dma_device`, mirrored from `include/dma_engine.h`.
//!
//! The header is the truth and has the prose; this mirror is layout, numbers and pure arithmetic
//! for the driver and the runtime. `tests/layout.rs` compiles the header and compares every size,
//! offset and number.
#![no_std]
#![forbid(unsafe_code)]

pub mod abi;

pub use abi::*;
