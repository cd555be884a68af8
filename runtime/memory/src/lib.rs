//! Memory that other processes write: sealed memfd segments, volatile views, futex words.
