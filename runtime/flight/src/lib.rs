//! The flight record: the last operations of a communicator, readable by other processes.
//!
//! Each rank of a communicator keeps a ring of fixed-size records in a sealed memfd with the name
//! [`layout::FILE_NAME`]. A reader finds it through `/proc/PID/fd`, so there is no socket, no
//! thread and no file, it works while the process hangs, and nothing is left when it dies.
//!
//! [`Recorder`] writes: some nanoseconds an operation, no lock, no allocation. [`Snapshot`] reads,
//! and believes nothing: the other process may be broken or hostile.

mod about;
mod called;
mod clock;
mod header;
pub mod layout;
mod mapped;
mod memory;
mod operation;
mod phase;
mod recorder;
mod scan;
mod signal;
mod snapshot;
mod source;
pub mod table;
mod text;
mod timeline;
pub mod trace;
mod world;
mod writer;

pub use about::{About, Vocabulary};
pub use called::{Called, Started};
pub use clock::{ClockKind, Moment};
pub use header::{Counter, FormatError, Header, Words};
pub use memory::{AtomicWords, RecordMemory};
pub use operation::{Details, Operation};
pub use phase::{Phase, State};
pub use recorder::Recorder;
pub use scan::{Found, Scan, scan};
pub use signal::{SignalError, dump_on, dump_signal};
pub use snapshot::Snapshot;
pub use source::Source;
pub use timeline::Timeline;
pub use world::{Member, World, duration, worlds};
pub use writer::Writer;
