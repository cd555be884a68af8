//! Where a part of the machine is.

use crate::PciPath;

/// Where a part of the machine is, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its way in the PCI tree; none for what is not on PCI, such as a NUMA node itself.
    pub pci: Option<PciPath>,
    /// The NUMA node that it belongs to.
    pub node: Option<u32>,
}
