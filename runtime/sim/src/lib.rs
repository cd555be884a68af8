//! N ranks in one process on a virtual clock, with scripted faults.
