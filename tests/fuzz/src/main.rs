//! Fuzz targets. Built by `scripts/fuzz` this is a fuzzer, which takes the arguments of libFuzzer;
//! built as usual it runs inputs that were found, once each: `stepccl-fuzz TARGET FILE...`.
//!
//! A target is a function over bytes that panics where something is wrong. It lies in
//! `tests/fuzz/src/targets`, or in the crate whose private parts it reaches, behind the feature
//! `fuzz`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
mod fuzzer;
#[cfg(not(fuzzing))]
mod replay;
mod target;
mod targets;

#[cfg(not(fuzzing))]
fn main() -> std::process::ExitCode {
    replay::main(std::env::args_os().skip(1).collect())
}
