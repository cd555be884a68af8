//! The devices that data goes to and comes from.

use crate::{Address, Cpus, Place};

/// What a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A GPU or another accelerator.
    Gpu {
        /// Who made it, where that is known.
        maker: Option<&'static str>,
        /// PCI numbers of maker and model.
        numbers: (u16, u16),
    },
    /// A network adapter.
    Nic {
        /// Its RDMA devices, such as `mlx5_0`.
        rdma: Vec<String>,
        /// Its network interfaces, such as `eth0`.
        interfaces: Vec<String>,
    },
    /// A DMA engine of the kernel's own framework.
    Dma {
        /// Channels it has.
        channels: u32,
        /// Channels that somebody uses.
        in_use: u32,
    },
}

impl Kind {
    /// A word for it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Gpu { .. } => "gpu",
            Self::Nic { .. } => "nic",
            Self::Dma { .. } => "dma",
        }
    }
}

/// A device of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// A short name that no other device of the machine has, such as `GPU0` or `NIC1`.
    pub label: String,
    /// What it is.
    pub kind: Kind,
    /// Where it is.
    pub place: Place,
    /// Processors near to it; those of its node where it does not say.
    pub cpus: Cpus,
    /// The driver that has it.
    pub driver: Option<String>,
    /// Speed and width of its PCI link as the kernel says them, such as `32.0 GT/s PCIe x16`.
    pub link: Option<String>,
}

impl Device {
    /// Its PCI address, where it is on PCI.
    #[must_use]
    pub fn address(&self) -> Option<Address> {
        self.place.pci.as_ref()?.function()
    }
}
