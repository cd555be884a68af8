//! Layout and index arithmetic of the ABI: no atomics, no unsafe code, no allocation.
//!
//! The driver compiles this folder by `#[path]`, with Rust 1.85 and edition 2021: paths are
//! relative (`super::`), and crate attributes stay outside.

pub mod address;
pub mod command;
pub mod completion;
pub mod descriptor;
pub mod ioctl;
pub mod proxy;
pub mod ring;
pub mod status;
pub mod submission;
pub mod version;

pub use command::{
    AttachEventfd, AttachProxy, Enter, Export, Import, Query, RegisterDmabuf, RegisterMemory,
    RingSetup, Submit, Unregister,
};
pub use completion::CompletionEntry;
pub use descriptor::Descriptor;
pub use proxy::{ProxyReply, ProxyRequest};
pub use ring::RingOffsets;
pub use status::EntryRule;
pub use submission::SubmissionEntry;
