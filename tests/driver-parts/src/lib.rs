//! What the kernel driver decides (`driver/parts`), compiled for the host.
//!
//! Only the tests beside it use it: nothing that is shipped links it.
#![no_std]
#![forbid(unsafe_code)]

pub use dma_engine_uapi::abi;

#[path = "../../../driver/parts/mod.rs"]
pub mod parts;
