//! Collectives compiled to steps: planners, verifier and cost model.
//!
//! Nothing here does IO, reads a clock or knows an engine.
#![forbid(unsafe_code)]

mod collective;
mod dtype;
mod program;
mod reduce_op;
mod step;

pub use collective::Collective;
pub use dtype::DType;
pub use program::{GRAIN_BYTES, Program, boundary};
pub use reduce_op::ReduceOp;
pub use step::{Place, Span, Step, Targets};
