//! What plans cost, and which to take.

mod bound;
mod choose;
mod figures;
mod lanes;
mod path;
mod timing;

pub use bound::lower_bound;
pub use choose::{Candidate, Choice, Limits, Verdict, choose};
pub use figures::{Figures, Link};
