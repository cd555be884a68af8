//! Gives the shared library the name that programs record when they are linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libstepccl.so.0");
}
