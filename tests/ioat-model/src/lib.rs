//! A model of an I/OAT device, the DMA engine of Intel's server chips, for QEMU guests.
//!
//! QEMU talks to it over vfio-user and shows it to the guest as a PCI device, which Linux drives with
//! its own, unmodified `ioatdma`. Each channel copies on a thread of its own, so that copies are under
//! way while the guest runs. It reaches nothing but what the guest's IOMMU, or all of the guest's memory
//! where there is none, has mapped for it; another address is an error and a line in its log.
//!
//! Copies can be made to go wrong: see [`fault`].
#![forbid(unsafe_code)]

pub mod channel;
pub mod config;
pub mod device;
pub mod fault;
pub mod memory;
pub mod registers;
pub mod worker;
