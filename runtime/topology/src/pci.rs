//! Places in the PCI tree.

use std::fmt;
use std::str::FromStr;

/// Deeper trees are not looked at: PCI has 256 buses.
const DEEPEST: usize = 64;

/// The address of a PCI function, such as `0000:3b:00.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Domain: a tree of buses of its own.
    pub domain: u32,
    /// Bus of the domain.
    pub bus: u8,
    /// Device on the bus, 0 to 31.
    pub device: u8,
    /// Function of the device, 0 to 7.
    pub function: u8,
}

/// A text that is no PCI address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoAddress;

impl FromStr for Address {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let mut parts = text.split(':');
        let (Some(domain), Some(bus), Some(rest), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(NoAddress);
        };
        let (device, function) = rest.split_once('.').ok_or(NoAddress)?;
        let device = hex(device, 2..=2)? as u8;
        let function = hex(function, 1..=1)? as u8;
        if device >= 32 || function >= 8 {
            return Err(NoAddress);
        }
        let (domain, bus) = (hex(domain, 4..=8)?, hex(bus, 2..=2)? as u8);
        Ok(Self { domain, bus, device, function })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device, function } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

fn hex(text: &str, digits: std::ops::RangeInclusive<usize>) -> Result<u32, NoAddress> {
    if !digits.contains(&text.len()) || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(NoAddress);
    }
    u32::from_str_radix(text, 16).map_err(|_| NoAddress)
}

/// The way from a host bridge of the processor down to a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PciPath {
    /// Domain and bus of the host bridge.
    pub host: (u32, u8),
    /// Bridges, and the function last; never empty.
    pub hops: Vec<Address>,
}

impl PciPath {
    /// The way that a folder of `/sys/devices` says, such as
    /// `pci0000:3a/0000:3a:00.0/0000:3b:00.0/net/eth0`. `None` where it goes to no PCI function.
    #[must_use]
    pub fn parse(folder: &str) -> Option<Self> {
        let mut parts = folder.split('/').skip_while(|part| host(part).is_none());
        let host = host(parts.next()?)?;
        let hops: Vec<Address> = parts.map_while(|part| part.parse().ok()).take(DEEPEST).collect();
        (!hops.is_empty()).then_some(Self { host, hops })
    }

    /// The function that the way leads to.
    #[must_use]
    pub fn function(&self) -> Option<Address> {
        self.hops.last().copied()
    }
}

/// Domain and bus of a name such as `pci0000:3a`.
fn host(part: &str) -> Option<(u32, u8)> {
    let (domain, bus) = part.strip_prefix("pci")?.split_once(':')?;
    Some((hex(domain, 4..=8).ok()?, hex(bus, 2..=2).ok()? as u8))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_those_of_the_kernel() {
        for text in ["0000:00:1f.3", "10000:e1:00.0", "ffff:ff:1f.7"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "00:1f.3",
            "0000:00:1f",
            "0000:00:20.0",
            "0000:00:1f.8",
            "0000:0:1f.3",
            "0000:00:+f.3",
            "x:y:z.w",
        ] {
            assert_eq!(text.parse::<Address>(), Err(NoAddress), "{text}");
        }
    }

    #[test]
    fn a_folder_says_the_way() {
        let path =
            PciPath::parse("pci0000:3a/0000:3a:00.0/0000:3b:00.0/infiniband/mlx5_0").unwrap();
        assert_eq!((path.host, path.hops.len()), ((0, 0x3a), 2));
        assert_eq!(path.function().unwrap().to_string(), "0000:3b:00.0");
        let behind_soc = PciPath::parse("platform/soc/40000000.pcie/pci0001:00/0001:00:00.0");
        assert_eq!(behind_soc.unwrap().host, (1, 0));
        for folder in
            ["virtual/net/lo", "pci0000:00", "pci0000:00/net/eth0", "", "///", "pcix/0000:00:00.0"]
        {
            assert_eq!(PciPath::parse(folder), None, "{folder}");
        }
    }

    #[test]
    fn a_tree_without_end_is_cut() {
        let folder = format!("pci0000:00{}", "/0000:00:01.0".repeat(10_000));
        assert_eq!(PciPath::parse(&folder).unwrap().hops.len(), DEEPEST);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn no_text_is_trouble(text in "(pci|[0-9a-f:./]|[^a]){0,60}") {
            if let Some(path) = PciPath::parse(&text) {
                prop_assert!(path.function().is_some());
            }
            if let Ok(address) = text.parse::<Address>() {
                prop_assert_eq!(address.to_string().parse(), Ok(address));
            }
        }
    }
}
