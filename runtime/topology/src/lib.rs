//! What this machine is made of, and how far its parts are from one another.
//!
//! [`Machine::read`] reads it from `/sys`, or from a copy of one. What is read is data of others:
//! it is bounded, and what makes no sense is left out. [`Distance::between`] decides from two
//! places in the PCI tree alone.

#![forbid(unsafe_code)]

mod cpus;
mod device;
mod distance;
mod machine;
mod node;
mod pci;
mod place;
mod sysfs;

pub use cpus::Cpus;
pub use device::{Device, Kind};
pub use distance::Distance;
pub use machine::Machine;
pub use node::Node;
pub use pci::{Address, PciPath};
pub use place::Place;
