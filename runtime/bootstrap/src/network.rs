//! Which addresses other nodes reach a rank by. Choosing is pure; the system is asked in one place.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

use crate::BootstrapError;

/// Most addresses that a rank publishes.
pub(crate) const MAX_ADDRESSES: usize = 16;

/// How ranks reach one another over the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// Link all ranks over TCP, those of one node too; one rank that says so decides for all.
    /// Otherwise only ranks of different nodes are.
    pub everywhere: bool,
    /// Interfaces to use: prefixes of their names with commas between, exact names after a leading
    /// `=`, all but those after a leading `^` (`eth,ib`, `=eth0`, `^docker,virbr`). Users know it
    /// as `STEPCCL_SOCKET_IFNAME`. Unset: all, with loopback for ranks of one node only.
    pub interfaces: Option<String>,
}

/// One address of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    name: String,
    address: IpAddr,
    up: bool,
}

impl Network {
    /// Whether the user wants this interface.
    fn wants(&self, name: &str) -> bool {
        let Some(list) = self.interfaces.as_deref().map(str::trim).filter(|l| !l.is_empty()) else {
            return true;
        };
        let (list, all_but) = match list.strip_prefix('^') {
            Some(rest) => (rest, true),
            None => (list, false),
        };
        let (list, exact) = match list.strip_prefix('=') {
            Some(rest) => (rest, true),
            None => (list, false),
        };
        let named = list
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .any(|word| if exact { name == word } else { name.starts_with(word) });
        named != all_but
    }

    /// Whether this machine has an interface to use.
    ///
    /// # Errors
    ///
    /// [`BootstrapError::System`] where there is none, with the interfaces that there are.
    pub fn check(&self) -> Result<(), BootstrapError> {
        self.addresses().map(|_| ())
    }

    /// Addresses to listen on, the most promising first.
    ///
    /// # Errors
    ///
    /// [`BootstrapError::System`] where there is none, with the interfaces that there are.
    pub(crate) fn addresses(&self) -> Result<Vec<IpAddr>, BootstrapError> {
        let list = getifaddrs().map_err(|e| BootstrapError::system("getifaddrs", e))?;
        let found: Vec<Found> = list
            .filter_map(|interface| {
                let address = interface.address.as_ref()?;
                let address = match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
                    (Some(four), _) => IpAddr::V4(four.ip()),
                    (None, Some(six)) => IpAddr::V6(six.ip()),
                    (None, None) => return None,
                };
                let up = interface.flags.contains(InterfaceFlags::IFF_UP);
                Some(Found { name: interface.interface_name, address, up })
            })
            .collect();
        self.choose(&found)
    }

    fn choose(&self, found: &[Found]) -> Result<Vec<IpAddr>, BootstrapError> {
        let mut usable: Vec<&Found> =
            found.iter().filter(|f| f.up && self.wants(&f.name) && promise(f).is_some()).collect();
        usable.sort_by_key(|f| promise(f));
        let addresses: Vec<IpAddr> = usable.iter().map(|f| f.address).take(MAX_ADDRESSES).collect();
        if addresses.is_empty() {
            let mut names: Vec<&str> = Vec::new();
            for Found { name, .. } in found {
                // One has several addresses, and they are listed by family.
                if !names.contains(&name.as_str()) {
                    names.push(name);
                }
            }
            let what = format!(
                "there is none with an address: STEPCCL_SOCKET_IFNAME is {}, and there are {}; \
                 bring one up or choose others",
                self.interfaces.as_deref().unwrap_or("not set"),
                if names.is_empty() { "none".to_owned() } else { names.join(", ") },
            );
            return Err(BootstrapError::system("choose a network interface", what));
        }
        Ok(addresses)
    }
}

/// Bridges and the like of virtual machines, which mostly lead nowhere.
const VIRTUAL: [&str; 5] = ["docker", "br-", "virbr", "veth", "cni"];

/// Place in the order of trial; none where an address cannot be used without more knowledge.
fn promise(found: &Found) -> Option<u8> {
    let (link_local, six) = match found.address {
        IpAddr::V4(four) if four.is_unspecified() || four.is_multicast() => return None,
        IpAddr::V4(four) => (four.is_link_local(), false),
        // Needs the number of an interface, which is another one at the other end.
        IpAddr::V6(six) if six.is_unicast_link_local() => return None,
        IpAddr::V6(six) if six.is_unspecified() || six.is_multicast() => return None,
        IpAddr::V6(_) => (false, true),
    };
    let last = if link_local || VIRTUAL.iter().any(|v| found.name.starts_with(v)) { 2 } else { 0 };
    // Loopback leads this order: who is not on this node leaves it out.
    Some(if found.address.is_loopback() { u8::from(six) } else { 2 + last + u8::from(six) })
}

/// Addresses of a peer that are worth a call, given whether it is on this node.
pub(crate) fn reachable(address: IpAddr, same_node: bool) -> bool {
    same_node || !address.is_loopback()
}

/// An address of 4 or 16 bytes.
pub(crate) fn from_bytes(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::V4(Ipv4Addr::from(four)));
    }
    <[u8; 16]>::try_from(bytes).ok().map(|six| IpAddr::V6(Ipv6Addr::from(six)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(interfaces: &str) -> Network {
        Network { everywhere: false, interfaces: Some(interfaces.to_owned()) }
    }

    fn found(name: &str, address: &str) -> Found {
        Found { name: name.to_owned(), address: address.parse().unwrap(), up: true }
    }

    #[test]
    fn names_are_prefixes_exact_or_excluded() {
        let names = ["lo", "eth0", "eth1", "ib0", "docker0"];
        let wanted = |list: &str| -> Vec<&str> {
            names.into_iter().filter(|name| network(list).wants(name)).collect()
        };
        assert_eq!(wanted("eth"), ["eth0", "eth1"]);
        assert_eq!(wanted("eth1, ib"), ["eth1", "ib0"]);
        assert_eq!(wanted("=eth0"), ["eth0"]);
        assert_eq!(wanted("=eth"), [""; 0]);
        assert_eq!(wanted("^docker,lo"), ["eth0", "eth1", "ib0"]);
        assert_eq!(wanted("^=eth0"), ["lo", "eth1", "ib0", "docker0"]);
        assert_eq!(wanted(" "), names);
        assert!(Network::default().wants("anything"));
    }

    #[test]
    fn usable_addresses_come_in_order_of_promise() {
        let all = [
            found("docker0", "172.17.0.1"),
            found("eth0", "fe80::1"),
            found("eth0", "2001:db8::5"),
            found("eth0", "10.0.0.5"),
            found("lo", "::1"),
            found("lo", "127.0.0.1"),
            found("eth1", "169.254.0.9"),
            Found { up: false, ..found("eth2", "10.0.0.6") },
        ];
        let chosen = Network::default().choose(&all).unwrap();
        let text: Vec<_> = chosen.iter().map(IpAddr::to_string).collect();
        let order = ["127.0.0.1", "::1", "10.0.0.5", "2001:db8::5", "172.17.0.1", "169.254.0.9"];
        assert_eq!(text, order);
        let far: Vec<_> = chosen.iter().filter(|a| reachable(**a, false)).collect();
        assert_eq!(far.len(), 4);
    }

    #[test]
    fn nothing_left_is_an_error_that_names_what_there_is() {
        // As the system lists them: each family after the other.
        let both = |four, six| [found("lo", four), found("eth0", six)];
        let all = [both("127.0.0.1", "10.0.0.5"), both("::1", "2001:db8::5")].concat();
        let text = network("ib").choose(&all).unwrap_err().to_string();
        assert!(
            text.contains("STEPCCL_SOCKET_IFNAME is ib") && text.contains("are lo, eth0;"),
            "{text}"
        );
    }

    #[test]
    fn this_machine_has_an_address() {
        assert!(!Network::default().addresses().unwrap().is_empty());
    }
}
