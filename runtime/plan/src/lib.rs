//! Collectives compiled to steps: planners, verifier and cost model.
//!
//! [`choose`] picks algorithm, page and depth for a size, [`Plan::program`] gives a rank its steps,
//! [`verify()`] proves a plan right for every size, [`describe()`] shows it to people. Nothing here
//! does IO, reads a clock or knows an engine.
//!
//! ```
//! use stepccl_plan::{Collective, DType, Figures, Limits, Plan, Topology, choose, verify};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let topology = Topology::uniform(16, 2)?;
//! let (figures, limits) = (Figures::default(), Limits::default());
//! let choice =
//!     choose(Collective::AllReduce, &topology, 1 << 20, DType::F32, &figures, &limits)?;
//! let plan = Plan::new(Collective::AllReduce, &topology, choice.algorithm)?;
//! let program = plan.program(3);
//! assert!(!program.steps.is_empty());
//! assert_eq!(verify(&plan)?.ranks, 16);
//! # Ok(())
//! # }
//! ```
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
mod size;
mod step;
mod topology;
mod verify;

pub use algorithm::Algorithm;
pub use collective::Collective;
pub use cost::{Candidate, Choice, Figures, Limits, Link, Verdict, choose, lower_bound};
pub use describe::{describe, describe_rank};
pub use dtype::{DType, Kind};
pub use error::PlanError;
pub use plan::Plan;
pub use program::{GRAIN_BYTES, MAX_FLAGS, Program, boundary};
pub use reduce_op::ReduceOp;
pub use size::format_bytes;
pub use step::{Place, Span, Step, Targets};
pub use topology::Topology;
pub use verify::{At, Form, Report, VerifyError, Waiting, verify, verify_programs};
