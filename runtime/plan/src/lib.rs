//! Collectives compiled to steps: planners, verifier and cost model.
//!
//! Nothing here does IO, reads a clock or knows an engine.
#![forbid(unsafe_code)]

mod algorithm;
mod collective;
mod cost;
mod describe;
mod dtype;
mod error;
mod plan;
mod program;
mod reduce_op;
mod step;
mod topology;
mod verify;

pub use algorithm::Algorithm;
pub use collective::Collective;
pub use cost::{Candidate, Choice, Figures, Limits, Link, Verdict, choose, lower_bound};
pub use describe::describe;
pub use dtype::DType;
pub use error::PlanError;
pub use plan::Plan;
pub use program::{GRAIN_BYTES, Program, boundary};
pub use reduce_op::ReduceOp;
pub use step::{Place, Span, Step, Targets};
pub use topology::Topology;
pub use verify::{At, Form, Report, VerifyError, Waiting, verify, verify_programs};
