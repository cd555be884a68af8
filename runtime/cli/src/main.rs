//! The `stepccl` command.
fn main() {}
