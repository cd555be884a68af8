//! The embedded engine: threads of the process over shared memory.
