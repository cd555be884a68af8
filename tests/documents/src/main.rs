//! The program of `Documentation/tutorial-rust.md`, as it stands there.

include!(concat!(env!("OUT_DIR"), "/tutorial-rust.rs"));
