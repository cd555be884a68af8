//! Which way a collective goes.

use std::sync::Arc;

use crate::prepared::Prepared;

/// How a collective of some size runs. The same on every rank.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// As posts on boards, which carry the data.
    Eager,
    /// By reading the memory of the others.
    Pull,
    /// Through staging, by a program.
    Program(Arc<Prepared>),
}
